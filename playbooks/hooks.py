"""What playbooks shows of outcomes and jobs; evolution, whose tables they are, sets it in ready().

Nothing has a default, as in accounts/hooks.py.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple
from uuid import UUID


class SourceOutcome(NamedTuple):
    """The outcome behind an edit or a vote."""

    task: str
    status: str


class Hooks:
    """The mappings hold expressions on a row of Playbook."""

    outcome_counts: Mapping[str, Any]  # outcome_count, pending_outcomes
    evolution_state: Mapping[str, Any]
    """success_rate (0-1 or NULL); job_status, job_id, job_at, job_version of the newest job."""
    find_outcomes: Callable[[UUID, Collection[UUID]], dict[UUID, SourceOutcome]]
    """Those of these outcomes that the playbook has, by id."""
    outcome_digests: Callable[[UUID], dict[str, str]]
    """A digest of each outcome that a job processed, by id: what a seal says of it."""
    changed_outcomes: Callable[[UUID, Mapping[str, str]], tuple[int, int]]
    """How many of a playbook's sealed outcomes are gone, and how many are not as they were."""
    trends: Callable[[Collection[UUID]], Mapping[UUID, Any]]
    """Success over the last weeks of each playbook, by id."""
    case_targets: Callable[[UUID], list[str]]
    """The right answers of a playbook's cases."""


hooks = Hooks()
