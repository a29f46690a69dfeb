"""Figures that are printed and not tested: a busy machine must not fail a build."""
