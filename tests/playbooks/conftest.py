"""Hypothesis without its deadline: on a busy machine a slow example is no failure."""

from hypothesis import settings

settings.register_profile("ace", deadline=None)
settings.load_profile("ace")
