"""`Idempotency-Key` on POST: a retry of the same request returns the first response."""

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from core.errors import Conflict, Invalid
from core.models import IdempotentResponse
from core.security.scopes import Principal

KEY = re.compile(r"[\x21-\x7e]{1,200}")


def idempotency_key(request: Request) -> str:
    """The request's key, or "". Raises Invalid for a malformed one."""
    key = request.headers.get("Idempotency-Key", "")
    if key and not KEY.fullmatch(key):
        raise Invalid.field("Idempotency-Key", "Send 1 to 200 ASCII characters without spaces.")
    return str(key)


def run_once(
    principal: Principal, request: Request, post: Callable[[], HttpResponseBase], secret: bool
) -> HttpResponseBase:
    """Honour the `Idempotency-Key` of a POST that creates a row.

    Only successful responses are kept, until they are purged or the row they show is deleted. With
    `secret` the response has a secret: its body is not kept, and a retry raises Conflict
    (`already_created`).
    """
    key = idempotency_key(request)
    if not key:
        return post()
    fingerprint = _fingerprint(principal, request)
    # One transaction: the unique row makes a parallel retry wait until the first request is done,
    # and an error leaves neither the row nor half of the work.
    with transaction.atomic():
        stored, is_new = IdempotentResponse.objects.get_or_create(
            user=principal.user, key=key, defaults={"request_hash": fingerprint}
        )
        if not is_new:
            return _replay(stored, fingerprint)
        response = post()
        _store(stored, response, secret)
    return response


def _store(stored: IdempotentResponse, response: HttpResponseBase, secret: bool) -> None:
    stored.status = response.status_code
    # As text: PostgreSQL reorders the keys of an object, and a replay has the same bytes.
    stored.body = None if secret else JSONRenderer().render(response.data).decode()  # type: ignore[attr-defined]  # always DRF's Response
    stored.subject_id = _created_id(response.data)  # type: ignore[attr-defined]  # as above
    stored.save(update_fields=["status", "body", "subject_id", "updated_at"])


def _created_id(body: Any) -> UUID | None:
    """The id of the row in a response, by which `IdempotentResponse.erase` finds it."""
    try:
        return UUID(str(body["id"]))
    except (KeyError, TypeError, ValueError):
        return None


def _replay(stored: IdempotentResponse, fingerprint: str) -> HttpResponse:
    if stored.request_hash != fingerprint:
        raise Conflict(
            "This Idempotency-Key was used for another request. Use a new key for a new request.",
            code="idempotency_conflict",
        )
    if stored.status is None:
        raise Conflict(
            "This request was already done, and the row it created was deleted. Use a new key to "
            "create it again.",
            code="already_deleted",
        )
    if stored.body is None:
        raise Conflict(
            "This request was already done: the key was created, and its secret was shown once. "
            "Rotate or revoke it if the response was lost.",
            code="already_created",
        )
    response = HttpResponse(stored.body, status=stored.status, content_type="application/json")
    response["Idempotency-Replayed"] = "true"
    return response


def _fingerprint(principal: Principal, request: Request) -> str:
    """A hash of the route, the body, and the playbooks that the API key is limited to.

    Without those, a limited key could read the stored response to an unlimited one.
    """
    limited_to = (
        None if principal.playbook_ids is None else sorted(map(str, principal.playbook_ids))
    )
    parts = [request.method, request.get_full_path(), request.data, limited_to]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
