"""One search over the rows that support is asked about: people, keys, jobs, requests, playbooks."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Model, Q
from django.http import HttpRequest
from django.urls import reverse

from accounts.keys.key_format import ID_LENGTH, KEY_PREFIX
from accounts.models import ApiKey, User
from core.admin import changelist_url, may
from core.models import AuditEntry
from core.sql.querysets import MAX_SEARCH_CHARS, is_uuid
from evolution.models import EvolutionJob, Outcome
from playbooks.models import Bullet, Playbook

SHOWN, AUDIT_LOG = 10, "core_auditentry"
BULLET_ID = re.compile(r"[a-z]{3}-\d{5}")


@dataclass(frozen=True)
class Hit:
    kind: str
    text: str
    href: str


def search_rows(request: HttpRequest, query: str) -> list[Hit]:
    """What `query` names exactly, then by parts of an e-mail or name; only what the reader may see.

    An API key may be pasted whole: only its prefix is read, and nothing of it is kept.
    """
    text = query.strip()[:MAX_SEARCH_CHARS]
    if not text:
        return []
    return [
        *_rows_by_id(request, text),
        *_rows_by_name(request, text),
        *_rows_of_request(request, text),
    ]


def _rows_by_id(request: HttpRequest, text: str) -> Iterator[Hit]:
    if is_uuid(text):
        for model in (User, Playbook, EvolutionJob, Outcome, ApiKey):
            yield from _hits(request, model, Q(pk=text))
    elif BULLET_ID.fullmatch(text):
        yield from _hits(request, Bullet, Q(public_id=text), lambda row: f"{row} of {row.playbook}")
    prefix = text.removeprefix(KEY_PREFIX)[:ID_LENGTH]
    if len(prefix) == ID_LENGTH:
        yield from _hits(request, ApiKey, Q(prefix=prefix), lambda key: f"{key}, of {key.user}")


def _rows_by_name(request: HttpRequest, text: str) -> Iterator[Hit]:
    yield from _hits(request, User, Q(email__icontains=text))
    yield from _hits(
        request, Playbook, Q(name__icontains=text), lambda row: f"{row}, of {row.owner}"
    )


def _rows_of_request(request: HttpRequest, text: str) -> Iterator[Hit]:
    """The evolutions that one request started, and its entries in the audit log."""
    yield from _hits(request, EvolutionJob, Q(correlation_id=text))
    if may(request, "view", AuditEntry) and AuditEntry.objects.filter(request_id=text).exists():
        yield Hit("audit log", "what the request changed", changelist_url(AUDIT_LOG, q=text))


def _hits(
    request: HttpRequest, model: type[Model], match: Q, describe: Callable[[Any], str] = str
) -> Iterator[Hit]:
    if not may(request, "view", model):
        return
    change = f"admin:{model._meta.label_lower.replace('.', '_')}_change"
    name = "admin:customer" if model is User else change
    for row in model._default_manager.filter(match).order_by("-pk")[:SHOWN]:
        yield Hit(str(model._meta.verbose_name), describe(row), reverse(name, args=[row.pk]))
