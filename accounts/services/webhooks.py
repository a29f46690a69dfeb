"""Webhooks: signed events to the URL of an account, kept as rows until they are delivered.

An event commits with what it tells of; the worker delivers it, and again after longer and longer
pauses. Signatures are those of Standard Webhooks (https://www.standardwebhooks.com). Events carry
ids, names and links, never the text of a playbook or an outcome.
"""

import base64
import hashlib
import hmac
import json
import random
import secrets
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db import connections, transaction
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.utils import timezone

from accounts.models import User, WebhookDelivery, WebhookEndpoint
from core.audit import record
from core.errors import Invalid, NotFound
from core.http.safe_http import HostUnreachable, fetch, resolve_public_addresses
from core.ratelimit.limits import consume_rate_limit
from core.security.encryption import DecryptionError, decrypt, encrypt

PREFIX = "whsec_"
PAUSES = (10, 60, 300, 1800, 7200, 21600, 43200)
"""Seconds between attempts, with up to 20 % more; then the event is given up, after 20 hours."""
SECONDS, MAX_RESPONSE_BYTES, THREADS = 10, 64 * 1024, 16
LEASE = timedelta(minutes=1)
"""After this time another process tries what a dead one has begun."""
GONE = 410
"""The status by which a receiver ends its subscription."""
MOST_EVENTS = 100
"""Of one account, before others get their turn."""
ROUND_SECONDS = 0.5
"""A round waits no longer; what takes longer is sent beside the next rounds."""


def set_webhook(*, user: User, url: str) -> tuple[WebhookEndpoint, str]:
    """Send the account's events to this URL; the secret that signs them is new, and told once.

    Raises Invalid.
    """
    url = _clean_url(url)
    secret = PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
    values = {"url": url, "encrypted_key": encrypt(secret), "failures": 0, "disabled_at": None}
    with transaction.atomic():
        endpoint, _ = WebhookEndpoint.objects.update_or_create(user=user, defaults=values)
        record(action="set_webhook", by=user, subject=endpoint, host=urlsplit(url).hostname or "")
    return endpoint, secret


def remove_webhook(*, user: User) -> None:
    """No more events; what was not delivered is gone. Raises NotFound."""
    with transaction.atomic():
        endpoint = webhook_of(user)
        record(action="remove_webhook", by=user, subject=endpoint)
        endpoint.delete()


def send_test_event(*, user: User) -> WebhookDelivery:
    """Queue an event of type `test`. Raises NotFound, RateLimited."""
    endpoint = webhook_of(user)
    consume_rate_limit("test_webhook", str(user.pk))
    return _queue(endpoint, "test", {"message": "The webhook works."})


def webhook_of(user: User) -> WebhookEndpoint:
    """The account's webhook. Raises NotFound."""
    endpoint = WebhookEndpoint.objects.filter(user=user).first()
    if endpoint is None:
        raise NotFound("webhook", "Set one first.", given="account")
    return endpoint


def emit_event(event: str, *, user_id: UUID | None, path: str = "", **data: Any) -> None:
    """Queue an event in the caller's transaction, if the account has a webhook.

    `path` becomes a link. One query, and one more with a webhook.
    """
    endpoint = WebhookEndpoint.objects.filter(user=user_id, disabled_at=None).first()
    if endpoint is not None:
        link = {"link": f"{settings.PUBLIC_URL}{path}"} if path and settings.PUBLIC_URL else {}
        _queue(endpoint, event, data | link)


def _queue(endpoint: WebhookEndpoint, event: str, data: Mapping[str, Any]) -> WebhookDelivery:
    now = timezone.now()
    message = {"type": event, "timestamp": now.isoformat(), "data": data}
    return WebhookDelivery.objects.create(
        endpoint=endpoint, event=event, message=message, next_attempt_at=now
    )


POOLS = [ThreadPoolExecutor(THREADS, thread_name_prefix="webhook") for _ in range(2)]
"""The second one for accounts whose last delivery failed."""
SENDING: dict[UUID, Future[int]] = {}
"""The endpoints whose events this process sends now, each by one thread of a pool."""


def deliver_webhooks(*, failing: bool = False) -> dict[str, int]:
    """Send the due events of each account; how many were delivered within the round.

    A URL that hangs holds up its own account only, unless THREADS of them hang for the first
    time: accounts whose last delivery failed (`failing`) have a lane of their own. Not inside a
    transaction.
    """
    busy = [pk for pk, sent in list(SENDING.items()) if not sent.done()]
    endpoints = WebhookEndpoint.objects.filter(disabled_at=None).exclude(pk__in=busy)
    endpoints = endpoints.exclude(failures=0) if failing else endpoints.filter(failures=0)
    oldest = _due(OuterRef("pk")).values("next_attempt_at")[:1]
    found = endpoints.annotate(since=Subquery(oldest)).exclude(since=None).order_by("since")
    chosen = found.values_list("pk", flat=True)[:THREADS]
    begun = {pk: POOLS[failing].submit(_deliver_due, pk) for pk in chosen}
    SENDING.update(begun)
    done, _ = wait(begun.values(), ROUND_SECONDS)
    return {"webhooks": sum(sent.result() for sent in done)} if begun else {}


def _due(endpoint: UUID | OuterRef) -> QuerySet[WebhookDelivery]:
    rows = WebhookDelivery.objects.filter(endpoint=endpoint, next_attempt_at__lte=timezone.now())
    return rows.order_by("next_attempt_at")


def _deliver_due(endpoint: UUID) -> int:
    """Send the events of an account, oldest first, until one fails; how many were delivered."""
    try:
        for delivered in range(MOST_EVENTS):
            delivery = _due(endpoint).first()
            if delivery is None or not _deliver(delivery.pk):
                return delivered
        return MOST_EVENTS
    finally:
        connections.close_all()


def retry_webhooks() -> dict[str, int]:
    """The same for accounts whose last delivery failed."""
    return deliver_webhooks(failing=True)


def _deliver(pk: UUID) -> bool:
    now = timezone.now()
    rows = WebhookDelivery.objects.filter(pk=pk, next_attempt_at__lte=now)
    if not rows.update(next_attempt_at=now + LEASE, attempts=F("attempts") + 1):
        return False  # another process has it
    delivery = WebhookDelivery.objects.select_related("endpoint").get(pk=pk)
    status, error = _send(delivery)
    _finish(delivery, status, error)
    return not error


def _send(delivery: WebhookDelivery) -> tuple[int | None, str]:
    """The status of the response, and what went wrong: empty when it was delivered."""
    body = json.dumps(delivery.message, separators=(",", ":")).encode()
    try:
        response = fetch(
            delivery.endpoint.url,
            method="POST",
            content=body,
            max_bytes=MAX_RESPONSE_BYTES,
            seconds=SECONDS,
            private_hosts=settings.PRIVATE_HOSTS,
            headers=sign(decrypt(delivery.endpoint.encrypted_key), delivery.message_id, body),
        )
    except (HostUnreachable, DecryptionError) as error:
        return None, str(error)
    is_ok = 200 <= response.status < 300
    return response.status, "" if is_ok else f"The URL responded with {response.status}."


def sign(secret: str, message_id: str, body: bytes) -> dict[str, str]:
    """The headers of a message by Standard Webhooks: its id, the time, and both signed with it."""
    moment = str(int(time.time()))
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = hmac.new(key, f"{message_id}.{moment}.".encode() + body, hashlib.sha256).digest()
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": moment,
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
    }


def _finish(delivery: WebhookDelivery, status: int | None, error: str) -> None:
    now, pause = timezone.now(), None
    if error and delivery.attempts <= len(PAUSES) and status != GONE:
        pause = PAUSES[delivery.attempts - 1] * random.uniform(1, 1.2)  # noqa: S311 - jitter
    rows = WebhookDelivery.objects.filter(pk=delivery.pk)
    rows.update(
        status=status,
        error=error[:200],
        delivered_at=None if error else now,
        next_attempt_at=now + timedelta(seconds=pause) if pause else None,
    )
    endpoints = WebhookEndpoint.objects.filter(pk=delivery.endpoint_id)
    if status == GONE:
        endpoints.update(disabled_at=now)
    elif error:
        endpoints.update(failures=F("failures") + 1)
    elif delivery.endpoint.failures:
        endpoints.update(failures=0)


def _clean_url(url: str) -> str:
    """A URL on the public internet, without credentials. Raises Invalid."""
    url = url.strip()
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        host = ""
    if not host or not url.isascii() or "\\" in url or "@" in parts.netloc or parts.fragment:
        raise Invalid.field("url", "Enter a URL such as https://hooks.example.com/ace.")
    is_plain = parts.scheme == "http" and host in settings.PRIVATE_HOSTS
    if parts.scheme != "https" and not is_plain:
        raise Invalid.field("url", "The URL does not start with https://.")
    try:
        resolve_public_addresses(host, port, private_hosts=settings.PRIVATE_HOSTS)
    except HostUnreachable as error:
        raise Invalid.field("url", error.message) from None
    return url
