"""Share links: a version diff or the evidence of a playbook, read-only, for anybody."""

import secrets
from datetime import timedelta

from django.db import transaction

from accounts.keys.key_format import digest
from core.audit import record
from core.clock import database_now
from core.errors import Conflict, Invalid, NotFound
from core.security.scopes import Principal
from evolution.models import ShareLink
from evolution.outcomes.validation import clean_choice
from playbooks.models import Playbook
from playbooks.services.loading import lock_playbook, version_of

MAX_LINKS, MAX_DAYS = 50, 365


def create_share_link(
    *,
    playbook: Playbook,
    by: Principal,
    kind: str,
    version: int | None = None,
    against: int | None = None,
    days: int = 30,
) -> tuple[ShareLink, str]:
    """A link and its token, of which only the digest is stored.

    A diff is of `version` (by default the current one) from `against` (the one before). Raises
    Invalid, NotFound (no such version), Conflict (`too_many`).
    """
    clean_choice("kind", kind, ShareLink.Kind.values)
    if not 0 < days <= MAX_DAYS:
        raise Invalid.field("days", f"Send a whole number of days from 1 to {MAX_DAYS}.")
    if kind == ShareLink.Kind.DIFF:
        version = version_of(playbook, version).number
        against = version_of(playbook, against or max(1, version - 1)).number
    else:
        version = against = None
    token, now = secrets.token_urlsafe(32), database_now()
    with transaction.atomic():
        lock_playbook(playbook)
        playbook.share_links.filter(expires_at__lte=now).delete()
        if playbook.share_links.count() >= MAX_LINKS:
            raise Conflict(f"{MAX_LINKS} links are open. Revoke one first.", code="too_many")
        link = ShareLink.objects.create(
            playbook=playbook,
            kind=kind,
            version=version,
            against=against,
            digest=digest(token),
            expires_at=now + timedelta(days=days),
        )
        record(action="create_share_link", by=by, subject=playbook, owner=playbook.owner_id)
    return link, token


def revoke_share_link(*, link: ShareLink, by: Principal) -> None:
    """Nobody can open the link any more."""
    playbook = link.playbook
    with transaction.atomic():
        record(action="revoke_share_link", by=by, subject=playbook, owner=playbook.owner_id)
        link.delete()


def find_share_link(token: str) -> ShareLink:
    """The link of this token. Raises NotFound: unknown, expired, or of a disabled account."""
    rows = ShareLink.objects.filter(playbook__owner__is_active=True)
    found = rows.filter(digest=digest(token), expires_at__gt=database_now())
    link = found.select_related("playbook").first()
    if link is None:
        raise NotFound("shared page", "It has expired or was revoked.", given="link")
    return link
