"""Webhooks: events are signed, retried by their rows, and never hold up another account."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User, WebhookDelivery, WebhookEndpoint
from accounts.services import webhooks
from accounts.services.webhooks import (
    PAUSES,
    deliver_webhooks,
    emit_event,
    remove_webhook,
    retry_webhooks,
    send_test_event,
    set_webhook,
)
from core.errors import Invalid, NotFound, RateLimited
from core.http.safe_http import HostUnreachable, fetch
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.worker.failures import mark_failed
from evolution.worker.sweep import sweep
from playbooks.models import Playbook
from tests.factories import make_key, make_outcome, make_review_item
from tests.harness.clients import logged_in_client
from tests.harness.rest_client import Rest
from tests.harness.trials import almost_harm, on_trial, report

pytestmark = pytest.mark.django_db(transaction=True)


class Receiver:
    """The owner's server: answers `status`, after `hanging` is set if there is one."""

    def __init__(self) -> None:
        self.status, self.got = 204, list[tuple[dict[str, str], bytes]]()
        self.hanging: threading.Event | None = None
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
                if receiver.hanging is not None:
                    receiver.hanging.wait(20)
                self.send_response(receiver.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]


@pytest.fixture
def receiver(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    settings.PRIVATE_HOSTS = ["127.0.0.1"]
    monkeypatch.setattr(webhooks, "ROUND_SECONDS", 20)
    made = Receiver()
    poll = {"poll_interval": 0.02}
    thread = threading.Thread(target=made.server.serve_forever, kwargs=poll)
    thread.start()
    yield made
    if made.hanging is not None:
        made.hanging.set()
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def make_due() -> None:
    WebhookDelivery.objects.exclude(next_attempt_at=None).update(next_attempt_at=timezone.now())


def test_an_event_is_signed_as_standard_webhooks_say(receiver: Receiver, alice: User) -> None:
    endpoint, secret = set_webhook(user=alice, url=receiver.url)
    assert secret not in endpoint.encrypted_key
    emit_event("review.waiting", user_id=alice.pk, count=2)
    assert deliver_webhooks() == {"webhooks": 1}
    ((headers, body),) = receiver.got
    moment = headers["webhook-timestamp"]
    signed = f"{headers['webhook-id']}.{moment}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert abs(timezone.now().timestamp() - int(moment)) < 60
    assert json.loads(body)["data"] == {"count": 2}
    assert deliver_webhooks() == {}  # delivered once


def test_a_failed_delivery_is_tried_again_by_its_row(receiver: Receiver, alice: User) -> None:
    set_webhook(user=alice, url=receiver.url)
    receiver.status = 500
    delivery = send_test_event(user=alice)
    assert deliver_webhooks() == {"webhooks": 0}
    delivery.refresh_from_db()
    assert (delivery.status, delivery.error) == (500, "The URL responded with 500.")
    assert delivery.next_attempt_at is not None
    wait = delivery.next_attempt_at - timezone.now()
    assert timedelta(seconds=5) < wait < timedelta(seconds=1.2 * PAUSES[0])
    assert (deliver_webhooks(), retry_webhooks()) == ({}, {})  # not yet
    make_due()
    receiver.status = 200
    assert retry_webhooks() == {"webhooks": 1}
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    assert WebhookEndpoint.objects.get().failures == 0


def test_it_is_given_up_after_the_last_pause(receiver: Receiver, alice: User) -> None:
    set_webhook(user=alice, url=receiver.url)
    receiver.status = 503
    send_test_event(user=alice)
    for _ in range(len(PAUSES) + 3):
        make_due()
        deliver_webhooks()
        retry_webhooks()
    row = WebhookDelivery.objects.get()
    assert (row.attempts, row.next_attempt_at) == (len(PAUSES) + 1, None)


def test_a_receiver_that_is_gone_gets_no_more(receiver: Receiver, alice: User) -> None:
    set_webhook(user=alice, url=receiver.url)
    receiver.status = 410
    send_test_event(user=alice)
    deliver_webhooks()
    emit_event("trial.started", user_id=alice.pk)
    assert WebhookDelivery.objects.get().next_attempt_at is None
    set_webhook(user=alice, url=receiver.url)
    emit_event("trial.started", user_id=alice.pk)
    assert WebhookDelivery.objects.count() == 2


def test_an_attempt_whose_process_died_is_made_again(receiver: Receiver, alice: User) -> None:
    set_webhook(user=alice, url=receiver.url)
    row = send_test_event(user=alice)
    later = timezone.now() + webhooks.LEASE
    WebhookDelivery.objects.update(attempts=1, next_attempt_at=later)  # it was begun
    assert deliver_webhooks() == {}
    make_due()
    assert deliver_webhooks() == {"webhooks": 1}
    row.refresh_from_db()
    assert (row.attempts, row.status) == (2, 204)


def test_a_url_that_hangs_holds_up_its_own_account_only(
    receiver: Receiver, alice: User, charlie: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "ROUND_SECONDS", 0)
    other = Receiver()
    other.hanging = threading.Event()
    thread = threading.Thread(target=other.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    hangs, _ = set_webhook(user=charlie, url=other.url)
    answers, _ = set_webhook(user=alice, url=receiver.url)
    for _ in range(20):
        emit_event("trial.ended", user_id=charlie.pk)
    for event in ("trial.ended", "trial.started"):
        emit_event(event, user_id=alice.pk)
        deliver_webhooks()
        assert webhooks.SENDING[answers.pk].result()
    assert not webhooks.SENDING[hangs.pk].done()
    assert len(other.got) <= 1
    other.hanging.set()
    assert webhooks.SENDING[hangs.pk].result() == 20  # one after the other, by one thread
    assert (len(receiver.got), len(other.got)) == (2, 20)
    other.server.shutdown()
    thread.join()
    other.server.server_close()


@pytest.mark.parametrize(
    "url",
    [
        *("http://hooks.example.com", "https://127.0.0.1/x", "https://[::1]/", "https://10.0.0.1"),
        *("ftp://127.0.0.2/", "https://a:b@example.com", "https://169.254.169.254/", "x", ""),
        *("https://example.com:8443/", "https://example.com/#a", "https://[", "javascript:x"),
    ],
)
def test_internal_and_odd_urls_are_refused(url: str, alice: User) -> None:
    with pytest.raises(Invalid):
        set_webhook(user=alice, url=url)
    assert not WebhookEndpoint.objects.exists()


def test_a_url_that_turned_internal_gets_no_connection(alice: User, receiver: Receiver) -> None:
    with pytest.raises(HostUnreachable):
        fetch(receiver.url, method="POST", content=b"{}", max_bytes=9, seconds=1)
    assert receiver.got == []


def test_a_trial_tells_its_start_and_its_harm(receiver: Receiver, alice: User) -> None:
    set_webhook(user=alice, url=receiver.url)
    playbook = on_trial(alice)
    almost_harm(playbook)
    report(playbook, alice, "newest", "failure")
    sweep()
    while deliver_webhooks():
        pass
    told = {event["type"]: event["data"] for event in receiver.events}
    assert told.keys() == {
        *("evolution.completed", "trial.started", "version.reverted", "trial.ended")
    }
    assert told["trial.ended"]["verdict"] == "worse"
    assert (told["version.reverted"]["version"], told["version.reverted"]["reverted_to"]) == (3, 1)
    assert all(data["playbook_id"] == str(playbook.pk) for data in told.values())


def test_a_held_suggestion_tells_without_its_text(
    receiver: Receiver, alice: User, playbook: Playbook
) -> None:
    set_webhook(user=alice, url=receiver.url)
    make_review_item(playbook, "Read https://docs.example.org/canary first.")
    deliver_webhooks()
    (event,) = receiver.events
    assert (event["type"], event["data"]["count"]) == ("review.waiting", 1)
    assert b"canary" not in receiver.got[0][1]


def test_without_a_webhook_nothing_is_kept(alice: User, playbook: Playbook) -> None:
    make_review_item(playbook, "Read https://docs.example.org/1 first.")
    emit_event("trial.ended", user_id=None)
    assert not WebhookDelivery.objects.exists()


def test_the_page_shows_the_secret_once_and_the_last_deliveries(
    receiver: Receiver, alice: User, charlie: User
) -> None:
    owner, stranger = logged_in_client(alice), logged_in_client(charlie)
    made = owner.post("/settings/webhook", {"url": receiver.url})
    assert (made.status_code, made["Cache-Control"]) == (201, "no-store")
    secret = made.context["secret"]
    assert secret.startswith("whsec_")
    assert secret in made.content.decode()
    owner.post("/settings/webhook/test")
    deliver_webhooks()
    page = owner.get("/settings/webhook").content.decode()
    assert "Delivered (204)" in page
    assert secret not in page
    assert receiver.url not in stranger.get("/settings/webhook").content.decode()
    assert (
        "on the public internet"
        in owner.post("/settings/webhook", {"url": "https://10.0.0.1/"}).content.decode()
    )
    owner.post("/settings/webhook/remove")
    assert not WebhookEndpoint.objects.exists()


def test_rest_does_the_same_for_its_user_only(
    receiver: Receiver, alice: User, charlie: User, staff: User
) -> None:
    rest = Rest.of(alice)
    assert rest.get("/webhook").status_code == 404
    made = rest.put("/webhook", {"url": receiver.url})
    assert made.json().keys() == {"url", "secret"}
    assert rest.post("/webhook/test").status_code == 202
    deliver_webhooks()
    found = rest.get("/webhook").json()
    assert (found["url"], found["deliveries"][0]["status"]) == (receiver.url, 204)
    assert "secret" not in found
    for other in (charlie, staff):
        assert Rest.of(other).get("/webhook").status_code == 404
    assert Rest(make_key(alice)[1]).get("/webhook").status_code == 403
    assert rest.delete("/webhook").status_code == 204
    with pytest.raises(NotFound):
        remove_webhook(user=alice)


def test_test_events_are_limited(receiver: Receiver, alice: User) -> None:
    set_webhook(user=alice, url=receiver.url)
    with pytest.raises(RateLimited):
        for _ in range(21):
            send_test_event(user=alice)


def test_an_evolution_that_failed_tells_why(
    receiver: Receiver, alice: User, playbook: Playbook
) -> None:
    set_webhook(user=alice, url=receiver.url)
    make_outcome(playbook, alice)
    job = trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
    mark_failed(job, code="poison", message="It crashed its workers.")
    deliver_webhooks()
    (event,) = receiver.events
    assert (event["type"], event["data"]["error_code"]) == ("evolution.failed", "poison")
    assert event["data"]["job_id"] == str(job.pk)
