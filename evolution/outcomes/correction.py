"""Corrections: a check that knows, such as CI, says how a reported task really went."""

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction

from core.audit import record
from core.clock import database_now
from core.errors import Invalid, NotFound
from core.security.scopes import Principal
from evolution.jobs.lifecycle import lock_active_playbook
from evolution.jobs.triggers import trigger_if_due, trigger_state_of
from evolution.models import Outcome
from evolution.outcomes.reporting import is_over_rate
from evolution.outcomes.trial_evidence import recount_in_trial
from evolution.outcomes.validation import MAX_REF_BYTES, clean_choice, clean_field
from playbooks.models import Playbook

CORRECTED = (
    *("ref", "notes", "status", "signal", "corrected_at"),
    *("processed_at", "job", "reflection_data", "updated_at"),
)
MAX_CORRECTED = 100
"""Outcomes of one reference that are corrected at once, newest first."""


def correct_by_ref(*, ref: str, by: Principal, status: str, notes: str = "") -> Sequence[Outcome]:
    """All outcomes of this reference that the caller can read, corrected. Raises NotFound."""
    rows = Outcome.objects.for_user(by).filter(playbook__status="active", job__training=None)
    named = rows.filter(ref=ref.strip()) if ref.strip() else rows.none()
    found = [
        correct_outcome(outcome=row, by=by, status=status, notes=notes)
        for row in named[:MAX_CORRECTED]
    ]
    if not found:
        raise NotFound("outcome", "Report one with it first.", given="ref")
    return found


def correct_outcome(
    *, outcome: Outcome, by: Principal, status: str = "", notes: str = "", ref: str = ""
) -> Outcome:
    """The outcome with `status` as ground truth, `notes` on why, and `ref`, where given.

    It goes on counting once, also in the arm of a running trial. If it is processed and its status
    changes, it is pending again: its next votes replace the earlier ones. Raises Invalid, TooLarge,
    RateLimited and Conflict (`archived`).
    """
    ref = clean_field("ref", ref.strip(), MAX_REF_BYTES)
    notes = clean_field("notes", notes.strip(), settings.MAX_NOTES_BYTES)
    if not (status or ref):
        raise Invalid("Send `outcome`, `ref` or both.")
    if status:
        clean_choice("outcome", status, Outcome.Status.values)
    with transaction.atomic():
        playbook = lock_active_playbook(Playbook(pk=outcome.playbook_id))
        row = Outcome.objects.filter(job__training=None).fetch(outcome.pk)
        before, row.ref = row.status, ref or row.ref
        if notes and notes not in row.notes:
            kept = f"{notes}\n{row.notes}".strip().encode()[: settings.MAX_NOTES_BYTES]
            row.notes = kept.decode(errors="ignore")
        if status:
            row.correct(status, now=database_now())
        row.save(update_fields=CORRECTED)
        if row.status != before:
            _count_correction(row, before, playbook, by)
    return row


def _count_correction(row: Outcome, before: str, playbook: Playbook, by: Principal) -> None:
    success = Outcome.Status.SUCCESS
    if (row.status == success) != (before == success):
        recount_in_trial(row, playbook)
    record(action="correct_outcome", by=by, subject=row, owner=playbook.owner_id, status=row.status)
    if not is_over_rate(by):
        trigger_if_due(playbook, state=trigger_state_of(playbook), by=by)
