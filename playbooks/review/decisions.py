"""Approve or decline an item of the review queue."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from core.audit import record
from core.errors import Conflict, Invalid
from core.security.scopes import Principal
from playbooks.document.operations import Operation
from playbooks.document.reason_codes import reason_text
from playbooks.document.text import clean_content, content_hash
from playbooks.models import Delta, ReviewItem, Version
from playbooks.services.loading import require_editable
from playbooks.services.publishing import judge_deltas, publish_deltas
from playbooks.services.trials import lock_to_publish


def approve_review_item(*, item: ReviewItem, by: Principal, content: str = "") -> ReviewItem:
    """The held operation is applied in its new `version`, with `content` as its text if given.

    The bullet keeps its outcomes as sources; its author is a person. Raises Conflict when
    it was decided already or no longer fits the playbook, Invalid for an unusable text.
    """
    with transaction.atomic():
        item = _lock(item)
        delta, playbook = item.delta, item.playbook
        require_editable(playbook)
        judge = partial(
            judge_deltas,
            playbook=playbook,
            operations=[_operation(delta, by, content)],
            reason=Version.Reason.EDIT,
            author=by,
            machine=False,
        )
        publication = publish_deltas(judge, playbook=playbook)
        if publication.version is None:
            _refuse(publication.deltas[0])
        if content.strip():
            # Only this wording is approved: the proposed one is held again when it comes again.
            item.content_hash = content_hash(clean_content(content))
        item.decide(state=ReviewItem.State.APPROVED, by=by.user, now=timezone.now())
        item.version = publication.version
        item.save()
        record(action="approve_review_item", by=by, subject=playbook, owner=playbook.owner_id)
    return item


def decline_review_item(*, item: ReviewItem, by: Principal) -> ReviewItem:
    """The text is rejected from now on. Raises Conflict when it was decided already."""
    with transaction.atomic():
        item = _lock(item)
        item.decide(state=ReviewItem.State.DECLINED, by=by.user, now=timezone.now())
        item.save(update_fields=["state", "decided_by", "decided_at", "updated_at"])
        playbook = item.playbook
        playbook.save(update_fields=["updated_at"])
        record(action="decline_review_item", by=by, subject=playbook, owner=playbook.owner_id)
    return item


def _lock(item: ReviewItem) -> ReviewItem:
    """Both rows, locked, playbook first. Raises Conflict unless the item is pending."""
    lock_to_publish(item.playbook)
    rows = ReviewItem.objects.select_for_update(of=("self",)).select_related("delta", "playbook")
    fresh = rows.get(pk=item.pk)
    if not fresh.is_pending:
        message = f"This text was already {fresh.state}."
        raise Conflict(message, code="already_decided")
    return fresh


def _operation(delta: Delta, by: Principal, content: str) -> Operation:
    """The held operation as the person's own, for the revision that it was made for."""
    proposed: dict[str, Any] = delta.after or {}
    before: dict[str, Any] = delta.before or {}
    return Operation(
        type=delta.type,
        id=delta.bullet_public_id,
        ids=tuple(proposed.get("ids", ())),
        section=proposed.get("section", ""),
        content=content.strip() or proposed.get("content", ""),
        reason=delta.reason,
        outcome_ids=tuple(delta.outcome_ids),
        revision=before.get("revision"),
        source=by.source,
    )


def _refuse(delta: Delta) -> None:
    message = reason_text(delta.reason_code)
    if delta.reason_code == "bad_content":
        raise Invalid.field("content", message)
    raise Conflict(f"It no longer fits the playbook: {message}", code=delta.reason_code)


def decide_review_items(
    *, items: Sequence[ReviewItem], by: Principal, approve: bool, texts: Mapping[str, str]
) -> tuple[int, list[str]]:
    """Approve or decline each item; returns how many, and why the others were refused.

    `texts`: what a person wrote in place of the proposed text, by the item's id.
    """
    done, refused = 0, []
    for item in items:
        try:
            if approve:
                approve_review_item(item=item, by=by, content=texts.get(str(item.pk), ""))
            else:
                decline_review_item(item=item, by=by)
            done += 1
        except (Conflict, Invalid) as refusal:
            refused.append(refusal.message)
    return done, refused
