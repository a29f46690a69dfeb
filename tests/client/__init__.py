"""Tests of the package ace and of the plugin, which is its hooks."""
