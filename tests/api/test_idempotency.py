"""`Idempotency-Key`: a repeated request gets the stored response, another one a conflict."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import ApiKey, User
from accounts.services.cleanup import delete_expired_rows
from core.models import IdempotentResponse
from evolution.models import Outcome
from playbooks.models import Playbook
from tests.harness.rest_client import Rest

pytestmark = pytest.mark.databases

REPORT = {"task_description": "Make the build green", "outcome": "success"}


def test_a_repeat_gets_the_stored_bytes_and_status(alice: User) -> None:
    rest, body = Rest.of(alice), {"name": "a"}
    first = rest.post("/playbooks", body, Idempotency_Key="one")
    rest.post("/playbooks", body)
    again = rest.post("/playbooks", body, Idempotency_Key="one")
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert (again["Content-Type"], again["Idempotency-Replayed"]) == ("application/json", "true")
    assert "Idempotency-Replayed" not in first
    assert Playbook.objects.count() == 2


def test_the_order_of_fields_does_not_make_another_request(alice: User) -> None:
    rest = Rest.of(alice)
    for body in (b'{"name": "a", "description": "b"}', b'{"description":"b","name":"a"}'):
        assert rest.post("/playbooks", body, Idempotency_Key="one").status_code == 201
    assert Playbook.objects.count() == 1


@pytest.mark.parametrize(("path", "name"), [("/playbooks", "b"), ("/playbooks?x=1", "a")])
def test_another_body_or_route_is_a_conflict(alice: User, path: str, name: str) -> None:
    rest = Rest.of(alice)
    rest.post("/playbooks", {"name": "a"}, Idempotency_Key="one")
    answer = rest.post(path, {"name": name}, Idempotency_Key="one")
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "idempotency_conflict"
    assert Playbook.objects.count() == 1


def test_an_error_is_not_stored(alice: User) -> None:
    rest = Rest.of(alice)
    assert rest.post("/playbooks", {"name": ""}, Idempotency_Key="one").status_code == 400
    assert not IdempotentResponse.objects.exists()
    assert rest.post("/playbooks", {"name": "a"}, Idempotency_Key="one").status_code == 201


def test_a_refusal_over_a_limit_is_not_stored(
    alice: User, playbook: Playbook, settings: Settings
) -> None:
    limits = {"report_outcome": "0/h", "report_outcome_over": "0/h"}
    settings.RATE_LIMITS = settings.RATE_LIMITS | limits
    path = f"/playbooks/{playbook.pk}/outcomes"
    answer = Rest.of(alice).post(path, REPORT, Idempotency_Key="one")
    assert answer.status_code == 429
    assert not IdempotentResponse.objects.exists()


def test_a_response_with_a_secret_is_not_stored(alice: User) -> None:
    rest, body = Rest.of(alice), {"name": "agent", "scopes": ["read"]}
    first = rest.post("/auth/api-keys", body, Idempotency_Key="one")
    again = rest.post("/auth/api-keys", body, Idempotency_Key="one")
    assert (first.status_code, again.status_code) == (201, 409)
    assert again.json()["error"]["code"] == "already_created"
    assert first.json()["key"] not in str(list(IdempotentResponse.objects.values_list()))
    assert ApiKey.objects.count() == 1


def test_two_people_may_use_the_same_key(alice: User, charlie: User) -> None:
    for user in (alice, charlie):
        answer: Any = Rest.of(user).post("/playbooks", {"name": "a"}, Idempotency_Key="one")
        assert answer.status_code == 201
    assert Playbook.objects.count() == 2


def test_a_response_is_kept_for_a_day(alice: User) -> None:
    rest = Rest.of(alice)
    rest.post("/playbooks", {"name": "a"}, Idempotency_Key="one")
    IdempotentResponse.objects.update(created_at=timezone.now() - timedelta(hours=25))
    delete_expired_rows()
    assert rest.post("/playbooks", {"name": "b"}, Idempotency_Key="one").status_code == 201


def test_a_repeated_report_is_the_outcome_itself(alice: User, playbook: Playbook) -> None:
    """Nothing beside the outcome is stored: it has the key."""
    rest, path = Rest.of(alice), f"/playbooks/{playbook.pk}/outcomes"
    first = rest.post(path, REPORT, Idempotency_Key="one")
    again = rest.post(path, REPORT, Idempotency_Key="one")
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert (again["Idempotency-Replayed"], Outcome.objects.count()) == ("true", 1)
    assert "Idempotency-Replayed" not in first
    other = rest.post(path, REPORT | {"notes": "Another."}, Idempotency_Key="one")
    assert other.json()["error"]["code"] == "idempotency_conflict"
    assert rest.post(path, REPORT, Idempotency_Key="o ne").status_code == 400
    assert not IdempotentResponse.objects.exists()
