"""What playbooks show of outcomes and evolutions, whose tables belong to the app above.

`evolution` registers it when it is loaded, so that nothing here reaches up through related names.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple
from uuid import UUID


class OutcomeData(NamedTuple):
    """Expressions on a row of Playbook, and a lookup of a playbook's outcomes by their ids.

    `counts`: outcome_count and pending_outcomes. `activity`: success_rate (0-1, NULL without
    outcomes), job_status and job_id of the newest evolution. `values(playbook, ids, field)` is
    that field of each outcome that exists, by id.
    """

    counts: Mapping[str, Any]
    activity: Mapping[str, Any]
    values: Callable[[UUID, Collection[UUID], str], dict[UUID, str]]


_registered: list[OutcomeData] = []


def register_outcome_data(data: OutcomeData) -> None:
    _registered[:] = [data]


def outcome_data() -> OutcomeData:
    return _registered[0]
