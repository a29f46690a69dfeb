"""Every error under /api has the same JSON form."""

from typing import Any
from unittest.mock import patch

import pytest
from django.db import DataError, InterfaceError, InternalError, OperationalError
from django.test import Client
from pytest_django import Settings

from accounts.models import User
from playbooks.models import Playbook
from tests.harness.rest_client import Rest

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def error_of(answer: Any, status: int) -> dict[str, Any]:
    """The error of an answer that has our shape, this status, and the id of its request."""
    assert answer.status_code == status
    body: dict[str, Any] = answer.json()
    assert set(body) == {"error", "request_id"}
    assert body["request_id"] == answer["X-Request-ID"]
    assert {"code", "message"} <= set(body["error"]) <= {"code", "message", "fields"}
    error: dict[str, Any] = body["error"]
    return error


@pytest.mark.parametrize("token", ["", "x", "ace_live_x", "a.b.c"])
def test_missing_and_bad_credentials_get_the_same_challenge(db: None, token: str) -> None:
    answer = Rest(token).get("/auth/me")
    assert error_of(answer, 401)["code"] == "not_authenticated"
    assert answer["WWW-Authenticate"] == "Bearer"


def test_another_scheme_is_no_credential(db: None) -> None:
    answer = Client().get("/api/v1/auth/me", headers={"Authorization": "Basic YTpi"})
    assert error_of(answer, 401)["code"] == "not_authenticated"


def test_a_session_is_no_credential_here(alice: User) -> None:
    client = Client()
    client.force_login(alice)
    assert error_of(client.get("/api/v1/auth/me"), 401)["code"] == "not_authenticated"


def test_a_wrong_field_is_named(alice: User) -> None:
    error = error_of(Rest.of(alice).post("/playbooks", {"name": ["a"]}), 400)
    assert error["code"] == "invalid"
    assert list(error["fields"]) == ["name"]


def test_a_field_inside_a_list_is_named_by_its_place(alice: User, playbook: Playbook) -> None:
    body = {"operations": [{"type": "ADD"}, {"type": "TAG", "ids": "x"}]}
    error = error_of(Rest.of(alice).post(f"/playbooks/{playbook.pk}/deltas", body), 400)
    assert list(error["fields"]) == ["operations.1.ids"]


@pytest.mark.parametrize("path", ["/nothing", "/playbooks/", "/playbooks/x", "/playbooks/1/2"])
def test_an_unknown_route_is_not_found_in_json(alice: User, path: str) -> None:
    assert error_of(Rest.of(alice).get(path), 404)["code"] == "not_found"


def test_an_unknown_row_is_not_found(alice: User) -> None:
    assert error_of(Rest.of(alice).get(f"/playbooks/{UNKNOWN}"), 404)["code"] == "not_found"


@pytest.mark.parametrize("method", ["DELETE", "OPTIONS", "TRACE", "PUT"])
def test_a_wrong_method_is_not_allowed(alice: User, method: str) -> None:
    answer = Rest.of(alice).send(method, "/playbooks")
    assert error_of(answer, 405)["code"] == "method_not_allowed"
    assert answer["Allow"] == "GET, POST, HEAD"


def test_an_unsupported_accept_header_is_not_acceptable(alice: User) -> None:
    answer = Rest.of(alice).get("/auth/me", Accept="text/html")
    assert error_of(answer, 406)["code"] == "not_acceptable"


def test_a_value_that_the_database_refuses_is_a_client_error(alice: User) -> None:
    with patch("accounts.api.views.ApiKey.objects.for_user", side_effect=DataError):
        error_of(Rest.of(alice).get("/auth/api-keys"), 400)


@pytest.mark.parametrize("fault", [OperationalError, InternalError, InterfaceError])
def test_a_busy_database_answers_with_retry_after(alice: User, fault: type[Exception]) -> None:
    with patch("accounts.api.views.ApiKey.objects.for_user", side_effect=fault):
        answer = Rest.of(alice).get("/auth/api-keys")
    assert error_of(answer, 503)["code"] == "busy"
    assert answer["Retry-After"] == "1"


def test_an_internal_error_reveals_no_internals(alice: User) -> None:
    with patch("accounts.api.views.ApiKey.objects.for_user", side_effect=KeyError("secret")):
        answer = Rest.of(alice).get("/auth/api-keys")
    assert error_of(answer, 500)["code"] == "server_error"
    assert "secret" not in answer.content.decode()


def test_responses_are_never_cached(alice: User) -> None:
    assert Rest.of(alice).get("/auth/me")["Cache-Control"] == "no-store"
    assert Rest().get("/auth/me")["Cache-Control"] == "no-store"


def test_a_page_of_a_listed_origin_may_send_an_idempotency_key(
    db: None, settings: Settings
) -> None:
    settings.CORS_ALLOWED_ORIGINS = ["https://app.example.org"]
    headers = {
        "Origin": "https://app.example.org",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,idempotency-key",
    }
    answer = Client().options("/api/v1/playbooks", headers=headers)
    assert answer.status_code == 200
    assert "idempotency-key" in answer["Access-Control-Allow-Headers"]
    assert answer["Access-Control-Allow-Origin"] == "https://app.example.org"


def test_a_missing_key_differs_from_a_wrong_one(db: None) -> None:
    missing = error_of(Client().get("/api/v1/auth/me"), 401)["message"]
    wrong = error_of(Rest("ace_live_x").get("/auth/me"), 401)["message"]
    assert "Send an API key" in missing
    assert "is invalid: unknown, incomplete, expired or revoked" in wrong


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/playbooks/abc", "“abc” is not an ID (a UUID)"),
        ("/playbooks/{}/versions/latest/diff", "“latest” is not a version number"),
        ("/nonsense", "No such route"),
        ("/playbooks/{}/nonsense", "No such route"),
    ],
)
def test_a_bad_id_is_told_from_a_bad_route(alice: User, path: str, said: str) -> None:
    error = error_of(Rest.of(alice).get(path.format(UNKNOWN)), 404)
    assert said in error["message"]


def test_a_post_to_a_bad_route_is_not_taken_for_a_form(db: None) -> None:
    answer = Client(enforce_csrf_checks=True).post("/api/v1/nonsense", {})
    assert "No such route" in error_of(answer, 404)["message"]


def test_an_unknown_choice_is_answered_with_the_choices(alice: User, playbook: Playbook) -> None:
    sent = {"task_description": "x", "outcome": "great"}
    error = error_of(Rest.of(alice).post(f"/playbooks/{playbook.pk}/outcomes", sent), 400)
    assert error["fields"]["outcome"] == ["Choose one of: success, failure, partial."]
    key = error_of(Rest.of(alice).post("/auth/api-keys", {"name": "a", "scopes": ["all"]}), 400)
    assert key["fields"]["scopes.0"][0].startswith("Choose one of: read, report")
    usage = error_of(Rest.of(alice).get("/billing/usage?period=q"), 400)
    assert usage["fields"]["period"] == ["Choose one of: day, week, month."]
