"""Settings of a playbook: name, limits, review policy, and whether it is archived."""

from typing import Any, TypedDict, Unpack

from django.db import transaction

from billing.limits.plan_limits import check_playbook_limit
from core.audit import record
from core.errors import Invalid
from core.security.scopes import Principal, Scope
from playbooks.models import Playbook, ReviewPolicy, TrialPolicy
from playbooks.services.loading import lock_playbook
from playbooks.services.validation import clean_description, clean_name, refuse_risky_texts
from playbooks.trials import stop_open_trial

MAX_TOKEN_BUDGET = 1_000_000
MAX_OUTCOME_THRESHOLD = 1_000
MAX_TIME_THRESHOLD_HOURS = 24 * 365
LIMITS = {
    "token_budget": (1, MAX_TOKEN_BUDGET),
    "outcome_threshold": (1, MAX_OUTCOME_THRESHOLD),
    "time_threshold_hours": (0, MAX_TIME_THRESHOLD_HOURS),
}
# How often evolutions start, and how much they read: a change spends money as starting one does.
COSTLY = LIMITS.keys()
CHOICES = {"review_policy": ReviewPolicy.values, "trial_policy": TrialPolicy.values}


class PlaybookSettings(TypedDict, total=False):
    """What update_playbook changes; a threshold of None means the operator's default."""

    name: str
    description: str
    token_budget: int
    outcome_threshold: int | None
    time_threshold_hours: int | None
    review_policy: str
    trial_policy: str


def update_playbook(
    *, playbook: Playbook, by: Principal, **settings: Unpack[PlaybookSettings]
) -> Playbook:
    """The given settings apply from now on.

    Turning trials off ends that of a version: everybody reads the newest. Raises Invalid, and
    Forbidden when an API key changes the review policy, or without the scope `evolve` what
    evolutions cost.
    """
    about = settings.get("description", "")
    refuse_risky_texts(by, name=[settings.get("name", "")], description=[about])
    given = {name: _clean(name, value) for name, value in settings.items()}
    changed = {name for name, value in given.items() if value != getattr(playbook, name)}
    if "review_policy" in changed:
        by.require(Scope.ACCOUNT)
    if changed & COSTLY:
        by.require(Scope.EVOLVE)
    if playbook.is_starter:
        given["starter_edited"] = True
    with transaction.atomic():
        if given.get("trial_policy") == TrialPolicy.OFF:
            lock_playbook(playbook)
            reason = "Ended by the setting: no trials."
            stop_open_trial(playbook, reason=reason, only_version=True)
        for field, value in given.items():
            setattr(playbook, field, value)
        # Only the given fields: the instance may be older than a concurrent change of the rest.
        playbook.save(update_fields=[*given, "updated_at"])
        owner, fields = playbook.owner_id, ", ".join(given)
        record(action="update_playbook", by=by, subject=playbook, owner=owner, fields=fields)
    return playbook


def _clean(name: str, value: Any) -> Any:
    """The value as it is stored. Raises Invalid."""
    if name in CHOICES:
        if value not in CHOICES[name]:
            raise Invalid.field(name, f"Choose one of: {', '.join(CHOICES[name])}.")
        return value
    if name in LIMITS:
        least, most = LIMITS[name]
        if value is not None and not least <= value <= most:
            raise Invalid.field(name, f"Send a whole number from {least:,} to {most:,}.")
        return value
    return clean_name(value) if name == "name" else clean_description(value)


def archive_playbook(*, playbook: Playbook, by: Principal) -> Playbook:
    """Hidden from lists; takes no edits, reports or evolutions. Every row is kept. Idempotent."""
    playbook.status = Playbook.Status.ARCHIVED
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
        playbook.status = Playbook.Status.ACTIVE
        playbook.save(update_fields=["status", "updated_at"])
        record(action="restore_playbook", by=by, subject=playbook, owner=playbook.owner_id)
    return playbook
