"""Tests with real agent programs."""
