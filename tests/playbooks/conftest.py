"""Hypothesis with the same examples in every run of the suite, and without its deadline.

A rare example would stop a change that has nothing to do with it, and on a busy machine a slow
one is no failure. `make nightly` (ACE_STATE_STEPS) draws others each time, and many more.
"""

import os

from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

NIGHTLY = int(os.environ.get("ACE_STATE_STEPS", "0")) > 0
settings.register_profile(
    "ace",
    deadline=None,
    database=None,
    derandomize=not NIGHTLY,
    max_examples=1000 if NIGHTLY else 40,
)
settings.load_profile("ace")
if not NIGHTLY:
    # Nor are they drawn from the constants of all modules that happen to be loaded: one that is
    # loaded while a test draws would change its draws half-way.
    providers._get_local_constants = Constants
