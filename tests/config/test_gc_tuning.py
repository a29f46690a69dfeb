"""A start does not go through what it has imported again and again."""

import gc

import pytest

from config.management import gc_tuning


def test_startup_objects_are_frozen_and_the_rest_is_collected(
    request: pytest.FixtureRequest,
) -> None:
    request.addfinalizer(gc.unfreeze)
    gc_tuning.disable_gc()
    assert not gc.isenabled()
    gc_tuning.freeze_and_enable_gc()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000
