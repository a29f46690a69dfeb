"""`Idempotency-Key`: the same request twice is done once and answered twice (Stripe's rule)."""

import hashlib
import json
import re
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, TypeVar
from uuid import UUID

from django.db import IntegrityError, transaction
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from core.errors import Conflict, Invalid
from core.models import IdempotentResponse
from core.rest.views import BaseAPIView
from core.security.scopes import Principal

KEY = re.compile(r"[\x21-\x7e]{1,200}")
RESPONSES_KEPT_FOR = timedelta(hours=24)
Post = Callable[..., HttpResponseBase]
P = TypeVar("P", bound=Post)


def idempotent(*, secret: bool = False) -> Callable[[P], Post]:
    """Honour `Idempotency-Key` on a POST that creates.

    Only the answers of success are kept, for a day, or until what they show is deleted. With
    `secret` the answer carries a secret, so its body is not kept and a repeat raises Conflict
    (`already_created`).
    """

    def around(post: P) -> Post:
        @wraps(post)
        def answer(
            view: BaseAPIView, request: Request, *args: Any, **kwargs: Any
        ) -> HttpResponseBase:
            key = idempotency_key(request)
            if not key:
                return post(view, request, *args, **kwargs)
            return _run_once(
                key, view, request, lambda: post(view, request, *args, **kwargs), secret
            )

        answer.is_idempotent = True  # type: ignore[attr-defined]  # read by the OpenAPI document
        return answer

    return around


def idempotency_key(request: Request) -> str:
    """The request's key, or an empty text. Raises Invalid for one that cannot be kept."""
    key = request.headers.get("Idempotency-Key", "")
    if key and not KEY.fullmatch(key):
        raise Invalid.field("Idempotency-Key", "Send 1 to 200 ASCII characters without spaces.")
    return str(key)


def _run_once(
    key: str,
    view: BaseAPIView,
    request: Request,
    post: Callable[[], HttpResponseBase],
    secret: bool,
) -> HttpResponseBase:
    wanted = _fingerprint(view.principal, request)
    IdempotentResponse.objects.filter(
        user=view.principal.user, created_at__lt=timezone.now() - RESPONSES_KEPT_FOR
    ).delete()
    try:
        # One transaction: the unique row makes a parallel repeat wait here until the first one is
        # done, and an error leaves neither the row nor half of the work.
        with transaction.atomic():
            stored = _claim(key, view.principal, wanted)
            response = post()
            _store(stored, response, secret)
    except _KeyTaken:
        return _replay(IdempotentResponse.objects.get(user=view.principal.user, key=key), wanted)
    return response


class _KeyTaken(Exception):
    """Another request holds this key."""


def _claim(key: str, who: Principal, wanted: str) -> IdempotentResponse:
    stored = IdempotentResponse(user=who.user, key=key, request_hash=wanted)
    try:
        with transaction.atomic():
            stored.save(force_insert=True)
    except IntegrityError:
        raise _KeyTaken from None
    return stored


def _store(stored: IdempotentResponse, response: HttpResponseBase, secret: bool) -> None:
    stored.status = response.status_code
    # As text: PostgreSQL reorders the keys of an object, and a replay has the same bytes.
    stored.body = None if secret else JSONRenderer().render(response.data).decode()  # type: ignore[attr-defined]  # always DRF's Response
    stored.subject_id = _created_id(response.data)  # type: ignore[attr-defined]  # as above
    stored.save(update_fields=["status", "body", "subject_id", "updated_at"])


def _created_id(answer: Any) -> UUID | None:
    """The row that an answer shows, whose texts go with it (`IdempotentResponse.erase`)."""
    try:
        return UUID(str(answer["id"]))
    except (KeyError, TypeError, ValueError):
        return None


def _replay(stored: IdempotentResponse, wanted: str) -> HttpResponse:
    if stored.request_hash != wanted:
        raise Conflict(
            "This Idempotency-Key was used for another request. Use a new key for a new request.",
            code="idempotency_conflict",
        )
    if stored.status is None:
        raise Conflict(
            "This request was already done, and what it made has been deleted since. Use a new key "
            "to make it again.",
            code="already_deleted",
        )
    if stored.body is None:
        raise Conflict(
            "This request was already done: the key was created, and its secret was shown once. "
            "Rotate or revoke it if the answer was lost.",
            code="already_created",
        )
    response = HttpResponse(stored.body, status=stored.status, content_type="application/json")
    response["Idempotency-Replayed"] = "true"
    return response


def _fingerprint(who: Principal, request: Request) -> str:
    """What makes two requests the same: route, body, and the playbooks in the key's reach.

    Without the reach, a limited key could read the stored answer to a wider one.
    """
    reach = None if who.playbook_ids is None else sorted(map(str, who.playbook_ids))
    parts = [request.method, request.get_full_path(), request.data, reach]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
