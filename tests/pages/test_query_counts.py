"""What every page costs in queries: pinned in a file, and the same in an account grown large."""

import pytest

from tests.harness import large_account
from tests.harness.large_account import BULLETS, VERSIONS
from tests.harness.page_timing import measure_all, read_pins, world_of
from tests.harness.sample_account import World

pytestmark = pytest.mark.django_db
# Shows what taking a source back would do, by doing it in a transaction that is undone.
DOES_THE_WORK = "/sources/user:"
# Shows what comes next, and that is another step in the large account than in the small one.
ANOTHER_STEP = "/start"
# More than any page shows and any loop takes at a time; `make page-speed` has 10,000.
OUTCOMES = 1_200
PIN = "If that is meant: `python -m tests.harness.page_speed --pin`, and look at the difference."


def faults(world: World) -> list[str]:
    """The pages that do not make as many queries as their pin says."""
    pins = read_pins()
    return [
        f"{one.page}: {one.queries} queries, pinned {pins.get(one.page)}"
        for one in measure_all(world, without=DOES_THE_WORK, pins=pins)
        if one.queries != pins.get(one.page) and one.page != ANOTHER_STEP
    ]


def test_every_page_costs_what_is_pinned() -> None:
    with world_of("small@example.org", big=False) as small:
        assert faults(small) == [], PIN


def test_more_rows_cost_no_more_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_account, "OUTCOMES", OUTCOMES)
    with world_of("big@example.org", big=True) as big:
        assert big.playbook.bullets.count() > BULLETS
        assert big.playbook.versions.count() > VERSIONS
        assert big.playbook.outcomes.count() > OUTCOMES
        assert faults(big) == [], PIN
