"""Corrections: a check that knows, such as CI, says how a reported task really went."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from django.conf import settings
from django.db import transaction

from core.audit import record
from core.clock import database_now
from core.errors import Forbidden, Invalid, NotFound
from core.security.scopes import Principal
from evolution.jobs.lifecycle import lock_active_playbook
from evolution.jobs.triggers import trigger_if_due, trigger_state_of
from evolution.models import Correction, Outcome
from evolution.outcomes.cases import recount_in_trial
from evolution.outcomes.reporting import is_over_rate
from evolution.outcomes.validation import MAX_REF_BYTES, clean_choice, clean_field
from playbooks.models import Playbook

CORRECTED = (
    *("ref", "notes", "status", "signal", "corrected_at"),
    *("processed_at", "job", "reflection_data", "updated_at"),
)
MAX_CORRECTED = 100
"""Outcomes of one reference that are corrected at once, newest first."""


def correct_by_ref(*, ref: str, by: Principal, status: str, notes: str = "") -> Sequence[Outcome]:
    """All outcomes of this reference that the caller can read, corrected. Raises NotFound.

    Whoever reported them: a reference is what a check, such as CI, knows of a task.
    """
    rows = Outcome.objects.for_user(by).filter(playbook__status="active", job__training=None)
    named = rows.filter(ref=ref.strip()) if ref.strip() else rows.none()
    found = [_correct(row, by, status, notes, "") for row in named[:MAX_CORRECTED]]
    if not found:
        raise NotFound("outcome", "Send the `ref` that it was reported with.", given="ref")
    return found


def correct_outcome(
    *, outcome: Outcome, by: Principal, status: str = "", notes: str = "", ref: str = ""
) -> Outcome:
    """The outcome with `status` as ground truth, `notes` on why, and `ref`, where given.

    It goes on counting once, also in the arm of a running trial. If it is processed and its status
    changes, it is pending again: its next votes replace the earlier ones. Raises Invalid, TooLarge,
    RateLimited, Conflict (`archived`), and Forbidden for a key or app by which it did not come.
    """
    came_by = {outcome.api_key_id, outcome.app_id}
    if not by.is_person and getattr(by.api_key or by.app, "pk", None) not in came_by:
        raise Forbidden(
            "This outcome was reported by another key or app. Correct it by its reference.",
            code="other_reporter",
        )
    return _correct(outcome, by, status, notes, ref)


def _correct(outcome: Outcome, by: Principal, status: str, notes: str, ref: str) -> Outcome:
    ref = clean_field("ref", ref.strip(), MAX_REF_BYTES)
    notes = clean_field("notes", notes.strip(), settings.MAX_NOTES_BYTES)
    if not (status or ref):
        raise Invalid("Send `outcome`, `ref` or both.")
    if status:
        clean_choice("outcome", status, Outcome.Status.values)
    elif notes:
        raise Invalid.field("notes", "Send `outcome` with `notes`.")
    with transaction.atomic():
        playbook = lock_active_playbook(Playbook(pk=outcome.playbook_id))
        row = Outcome.objects.filter(job__training=None).fetch(outcome.pk)
        before, row.ref = row.status, ref or row.ref
        is_new = bool(status) and _add(row, by, status, notes)
        row.save(update_fields=CORRECTED)
        if is_new:
            _recount([row], {row.pk: before}, playbook)
            owner = playbook.owner_id
            record(action="correct_outcome", by=by, subject=row, owner=owner, status=row.status)
            if not is_over_rate(by):
                trigger_if_due(playbook, state=trigger_state_of(playbook), by=by)
    return row


def _add(row: Outcome, by: Principal, status: str, notes: str) -> bool:
    """Keep what the source says, in place of what it said before; True if the status is new."""
    reported = row.corrections.first() or Correction(
        reported_status=row.status, reported_signal=row.signal, reported_notes=row.notes
    )
    said = {"status": status, "notes": notes, "source_name": by.source_name[:100]}
    kept = {
        name: getattr(reported, name)
        for name in ("reported_status", "reported_signal", "reported_notes")
    }
    row.corrections.update_or_create(
        source=by.source,
        defaults=said,
        create_defaults=said | kept | {"playbook_id": row.playbook_id},
    )
    return row.restate(row.corrections.all(), reported, now=database_now())


def undo_corrections(*, playbook: Playbook, source: str, dry_run: bool = False) -> set[str]:
    """Take back what this source said of the playbook's outcomes.

    Returns the ids of those whose status it had changed. The caller has locked the playbook.
    """
    taken = list(
        Correction.objects.filter(playbook=playbook, source=source)
        .select_related("outcome__trial")
        .prefetch_related("outcome__corrections")
    )
    now, rows = database_now(), [one.outcome for one in taken]
    before = {row.pk: row.status for row in rows}
    changed = {
        str(row.pk)
        for one, row in zip(taken, rows, strict=True)
        if row.restate((other for other in row.corrections.all() if other != one), one, now=now)
    }
    if not dry_run:
        Outcome.objects.bulk_update(rows, CORRECTED[:-1], batch_size=200)
        Correction.objects.filter(pk__in=[one.pk for one in taken]).delete()
        _recount(rows, before, playbook)
    return changed


def _recount(rows: Sequence[Outcome], before: Mapping[UUID, str], playbook: Playbook) -> None:
    """Count each running trial anew in which a success became none, or the other way round."""
    success = Outcome.Status.SUCCESS
    turned = (row for row in rows if (row.status == success) != (before[row.pk] == success))
    for row in {row.trial_id: row for row in turned}.values():
        recount_in_trial(row, playbook)
