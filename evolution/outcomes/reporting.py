"""Reporting outcomes: store a report and trigger an evolution when one is due."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import CharField

from billing.limits.plan_limits import report_rate
from core.errors import Conflict, RateLimited
from core.ratelimit.limits import consume_rate_limit
from core.security.scopes import Principal
from core.sql.compiled_queries import CompiledInsert, CompiledQuery, Param, uuid_param
from core.sql.querysets import CompiledLookup
from evolution.jobs.lifecycle import lock_active_playbook
from evolution.jobs.triggers import trigger_if_due, trigger_state_of
from evolution.models import EvolutionJob, Outcome
from evolution.outcomes import validation
from evolution.outcomes.cases import count_in_trial, record_answer
from playbooks.models import Playbook

OWN_PLAYBOOK = CompiledLookup(  # what a report needs of it
    lambda by: Playbook.objects.for_user(by).only("owner", "current_version", "open_trial")
)
INSERT_OUTCOME = CompiledInsert()
KNOWN_OUTCOME = CompiledQuery(
    lambda: Outcome.objects.filter(
        playbook=uuid_param("playbook"), idempotency_key=Param("key", CharField())
    )
)
CASE_NOTE = "This answers a case: it counts toward a version check and isn't learned from."
RATE_WARNING = "Many reports this hour: this one is stored and will be in a later evolution."


@dataclass(frozen=True)
class RecordedOutcome:
    """The result of a report: `job` is the evolution that it started, if any.

    `is_new` is false when an idempotency key was repeated; a repeat starts nothing, and `job` is
    the active one. `warnings` name what was not understood.
    """

    outcome: Outcome
    pending_outcomes: int
    job: EvolutionJob | None
    is_new: bool
    warnings: Sequence[str] = ()


def report_outcome(
    *,
    playbook: Playbook,
    by: Principal,
    task_description: str,
    outcome: str,
    reasoning_trace: str = "",
    notes: str = "",
    bullet_ids: Sequence[str] = (),
    harmful_bullet_ids: Sequence[str] = (),
    serving_id: str = "",
    signal: str = Outcome.Signal.SELF_REPORT,
    ref: str = "",
    idempotency_key: str = "",
    cost_usd: Decimal | None = None,
    warnings: Sequence[str] = (),
) -> RecordedOutcome:
    """Store the outcome for the next evolution, which is triggered when due.

    `bullet_ids` were used, `harmful_bullet_ids` misled; `ref` names a commit, pull request or run,
    for a later correction; `warnings` are given back first. Raises Invalid, TooLarge, RateLimited,
    Conflict (`archived`, `idempotency_conflict`).
    """
    report, slips = validation.clean_report(
        playbook=playbook,
        by=by,
        task_description=task_description,
        outcome=outcome,
        reasoning_trace=reasoning_trace,
        notes=notes,
        bullet_ids=bullet_ids,
        harmful_bullet_ids=harmful_bullet_ids,
        serving_id=serving_id,
        signal=signal,
        ref=ref,
        idempotency_key=idempotency_key,
        cost_usd=cost_usd,
    )
    try:
        recorded = _store_report(playbook, by, report)
    except IntegrityError:
        # The database refused a second row for one idempotency key: the first one answers.
        if not idempotency_key:
            raise
        recorded = _store_report(playbook, by, report)
    return replace(recorded, warnings=[*warnings, *slips, *recorded.warnings])


def _store_report(playbook: Playbook, by: Principal, report: Outcome) -> RecordedOutcome:
    # Before the lock: of two reports with one key the unique index refuses the second.
    if (known := _known_report(report)) is not None:
        job = EvolutionJob.objects.active().filter(playbook=playbook).first()
        return RecordedOutcome(known, _pending(playbook), job, is_new=False)
    # In Redis before the lock, for which others wait; a counter of the database after it, like that
    # of a correction: in another order they would wait for each other.
    is_counted = bool(settings.REDIS_URL) and not report.is_case
    waits = is_counted and is_over_rate(by)
    with transaction.atomic():
        locked = lock_active_playbook(playbook)
        if report.is_case:
            record_answer(report, locked)
            return RecordedOutcome(report, _pending(locked), None, True, [CASE_NOTE])
        waits = waits if is_counted else is_over_rate(by)
        if report.version_assumed and locked.current_version_id is not None:
            report.version_id = locked.current_version_id
        count_in_trial(report, locked)
        INSERT_OUTCOME.insert(report)
        state = trigger_state_of(locked)
        job = None if waits else trigger_if_due(locked, state=state, by=by)
    return RecordedOutcome(report, state.pending, job, True, [RATE_WARNING] if waits else [])


def _pending(playbook: Playbook) -> int:
    return Outcome.objects.pending().filter(playbook=playbook).count()


def is_over_rate(by: Principal) -> bool:
    """Whether a report of this user only waits: it is stored, and starts no evolution.

    Raises RateLimited far above that, where reports would fill the database.
    """
    key = str(by.user.pk)
    try:
        consume_rate_limit("report_outcome", key, rate=report_rate(by.user))
    except RateLimited:
        consume_rate_limit("report_outcome_over", key)
        return True
    return False


def _known_report(report: Outcome) -> Outcome | None:
    if not report.idempotency_key:
        return None
    known = KNOWN_OUTCOME.first(playbook=report.playbook_id, key=report.idempotency_key)
    if known is not None and known.request_hash != report.request_hash:
        raise Conflict(
            "This idempotency key was used for another report. Use a new key for a new report.",
            code="idempotency_conflict",
        )
    return known
