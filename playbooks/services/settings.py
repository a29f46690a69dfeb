"""Settings of a playbook: name, limits, review policy, and whether it is archived."""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from django.db import transaction

from billing.limits.plan_limits import check_playbook_limit
from core.audit import record
from core.errors import Invalid
from core.security.scopes import Principal, Scope
from playbooks.models import Playbook, ReviewPolicy, TrialPolicy
from playbooks.services.loading import lock_playbook
from playbooks.services.validation import (
    clean_description,
    clean_name,
    clean_number,
    refuse_risky_texts,
)
from playbooks.trials.lifecycle import end_version_trial

MAX_TOKEN_BUDGET = 1_000_000
MAX_OUTCOME_THRESHOLD = 1_000
MAX_TIME_THRESHOLD_HOURS = 24 * 365
# How often evolutions start, and how much they read.
COSTLY = ("outcome_threshold", "time_threshold_hours", "token_budget")


class Unset(Enum):
    """Leave a setting as it is, where None already means that the operator's default applies."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET


def update_playbook(
    *,
    playbook: Playbook,
    by: Principal,
    name: str | None = None,
    description: str | None = None,
    token_budget: int | None = None,
    outcome_threshold: int | Unset | None = UNSET,
    time_threshold_hours: int | Unset | None = UNSET,
    review_policy: str | None = None,
    trial_policy: str | None = None,
) -> Playbook:
    """The given settings apply from now on; a threshold of None means the operator's default.

    Turning trials off ends that of a version: everybody reads the newest. Raises Invalid, and
    Forbidden when an API key changes the review policy, or without the scope `evolve` what
    evolutions cost.
    """
    refuse_risky_texts(by, name=[name or ""], description=[description or ""])
    given: dict[str, Any] = _clean_numbers(token_budget, outcome_threshold, time_threshold_hours)
    if name is not None:
        given["name"] = clean_name(name)
    if description is not None:
        given["description"] = clean_description(description)
    if review_policy is not None:
        given["review_policy"] = _clean_policy(review_policy, playbook, by)
    if trial_policy is not None:
        given["trial_policy"] = _clean_choice("trial_policy", trial_policy, TrialPolicy.values)
    if playbook.is_starter:
        given["starter_edited"] = True
    _check_costs(given, playbook, by)
    with transaction.atomic():
        if trial_policy == TrialPolicy.OFF:
            lock_playbook(playbook)
            end_version_trial(playbook, reason="Ended by the setting: no trials.")
        for field, value in given.items():
            setattr(playbook, field, value)
        # Only the given fields: the instance may be older than a concurrent change of the rest.
        playbook.save(update_fields=[*given, "updated_at"])
        owner, fields = playbook.owner_id, ", ".join(given)
        record(action="update_playbook", by=by, subject=playbook, owner=owner, fields=fields)
    return playbook


def _clean_numbers(
    token_budget: int | None,
    outcome_threshold: int | Unset | None,
    time_threshold_hours: int | Unset | None,
) -> dict[str, Any]:
    """The numbers among the settings that were given."""
    found: dict[str, Any] = {}
    if token_budget is not None:
        clean_number("token_budget", token_budget, least=1, most=MAX_TOKEN_BUDGET)
        found["token_budget"] = token_budget
    if outcome_threshold is not UNSET:
        found["outcome_threshold"] = clean_number(
            "outcome_threshold", outcome_threshold, least=1, most=MAX_OUTCOME_THRESHOLD
        )
    if time_threshold_hours is not UNSET:
        found["time_threshold_hours"] = clean_number(
            "time_threshold_hours", time_threshold_hours, least=0, most=MAX_TIME_THRESHOLD_HOURS
        )
    return found


def archive_playbook(*, playbook: Playbook, by: Principal) -> Playbook:
    """Hidden from lists and closed to edits; every row is kept. Idempotent."""
    playbook.archive()
    with transaction.atomic():
        playbook.save(update_fields=["status", "updated_at"])
        record(action="archive_playbook", by=by, subject=playbook, owner=playbook.owner_id)
    return playbook


def restore_playbook(*, playbook: Playbook, by: Principal) -> Playbook:
    """An archived playbook takes edits and reports again. Raises PlanLimitReached, NotFound."""
    with transaction.atomic():
        if playbook.is_archived and playbook.owner is not None:
            active = Playbook.objects.active().filter(owner=playbook.owner)
            check_playbook_limit(user=playbook.owner, active=active)
        # After the owner's row, as a deletion of the account takes them; it may have come first.
        lock_playbook(playbook)
        playbook.restore()
        playbook.save(update_fields=["status", "updated_at"])
        record(action="restore_playbook", by=by, subject=playbook, owner=playbook.owner_id)
    return playbook


def _check_costs(given: dict[str, Any], playbook: Playbook, by: Principal) -> None:
    """Changing when evolutions start, or how much they read, spends money as starting one does."""
    current = {name: getattr(playbook, name) for name in COSTLY}
    if any(given[name] != current[name] for name in current.keys() & given.keys()):
        by.require(Scope.EVOLVE)


def _clean_policy(policy: str, playbook: Playbook, by: Principal) -> str:
    _clean_choice("review_policy", policy, ReviewPolicy.values)
    if policy != playbook.review_policy:
        by.require(Scope.ACCOUNT)
    return policy


def _clean_choice(name: str, word: str, known: Sequence[str]) -> str:
    if word not in known:
        raise Invalid.field(name, f"Choose one of: {', '.join(known)}.")
    return word
