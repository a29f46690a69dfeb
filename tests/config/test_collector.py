"""A start does not go through what it has imported again and again."""

import gc

import pytest

from config import collector


def test_what_a_start_made_is_left_alone_and_the_rest_is_collected(
    request: pytest.FixtureRequest,
) -> None:
    request.addfinalizer(gc.unfreeze)
    collector.sleep()
    assert not gc.isenabled()
    collector.wake()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000
