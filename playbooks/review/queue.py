"""The rows behind the review rule, and adding held operations to the queue."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from accounts.services.webhooks import emit_event
from core.errors import Conflict
from core.security.scopes import Principal
from playbooks.document.operations import Provenance, Result
from playbooks.document.review_rule import Review
from playbooks.document.state import ACTIVE
from playbooks.document.text import content_hash
from playbooks.hooks import hooks
from playbooks.models import Delta, Playbook, ReviewItem, Version

DAY = timedelta(days=1)
NOBODY = Provenance()
SERVED = ("content", "status")
TEXT_CHANGES = (Delta.Type.ADD, Delta.Type.UPDATE, Delta.Type.MERGE)


def review_rule_for(
    playbook: Playbook, provenance: Provenance = NOBODY, by: Principal | None = None
) -> Review:
    """The rule for what a machine proposes to this playbook now; `by`: whose key or app edits."""
    return Review(
        policy=playbook.review_policy,
        decided=dict(
            playbook.review_items.order_by("created_at").values_list("content_hash", "state")
        ),
        sources=provenance.sources,
        author=by.source if by else "",
        taught=_recent_changes_by_source(playbook),
        cap=settings.SOURCE_CHANGES_PER_DAY,
        targets=hooks.case_targets(playbook.pk),
    )


def _recent_changes_by_source(playbook: Playbook) -> Counter[str]:
    """How many texts each source changed in the last day."""
    rows = playbook.deltas.applied().filter(type__in=TEXT_CHANGES)
    rows = rows.filter(created_at__gt=timezone.now() - DAY)
    learned = rows.filter(job_id__isnull=False).values_list("provenance", flat=True)
    edits = rows.filter(version__reason=Version.Reason.EDIT).exclude(source="")
    return Counter(source for kept in learned for source in kept.get("sources", ())) + Counter(
        edits.values_list("source", flat=True)
    )


def refuse_unreviewed_texts(playbook: Playbook, result: Result, by: Principal) -> None:
    """Raise Conflict when a key or app would bring back a text that needs a person's review."""
    if by.is_person:
        return
    rule = review_rule_for(playbook, by=by)
    for change in result.applied:
        before, after = change.before or {}, change.after or {}
        is_new = [before.get(name) for name in SERVED] != [after.get(name) for name in SERVED]
        if is_new and after.get("status") == ACTIVE and rule.needs_person(after["content"]):
            raise Conflict(
                f"This would bring back {change.bullet_id}, whose text needs review. "
                "Ask a person to do it on the page.",
                code="needs_person",
            )


def provenance_of(provenance: Provenance, outcome_ids: Iterable[str]) -> dict[str, object]:
    """The provenance that a delta row keeps; empty for a person's."""
    sources = {provenance.sources[name] for name in outcome_ids if name in provenance.sources}
    kept = {"model": provenance.model, "sources": sorted(sources)}
    return {name: value for name, value in kept.items() if value}


def update_review_queue(playbook: Playbook, deltas: Sequence[Delta]) -> None:
    """Add held deltas to the queue; called in the transaction that wrote them.

    A lesson that waited for room and that an evolution has now added waits no longer.
    """
    held = [delta for delta in deltas if delta.status == Delta.Status.HELD]
    added = [d for d in deltas if d.job_id and (d.type, d.status) == ("ADD", "applied")]
    if added:
        texts = [content_hash(delta.text) for delta in added]
        playbook.review_items.pending().filter(content_hash__in=texts).update(
            state="approved", version=added[0].version, decided_at=timezone.now()
        )
    ReviewItem.objects.bulk_create(
        ReviewItem(
            playbook=playbook,
            delta=delta,
            content_hash=content_hash((delta.after or {}).get("content", "")),
        )
        for delta in held
    )
    if held:
        emit_event(
            "review.waiting",
            user_id=playbook.owner_id,
            path=f"{reverse('evolution:inbox')}?playbook={playbook.pk}",
            playbook_id=str(playbook.pk),
            playbook=playbook.name,
            count=len(held),
        )
