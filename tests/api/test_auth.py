"""Signing in and API keys over REST."""

from typing import Any

import pytest

from accounts.models import ApiKey, User
from tests.factories import PASSWORD
from tests.harness.rate_limit_windows import frozen_rate_window as frozen_rate_window
from tests.harness.rest_client import Rest

SENT = {"email": "Dora@example.org", "password": PASSWORD}


def without_ids(answer: Any) -> tuple[int, Any]:
    body = answer.json()
    body.pop("request_id", None)
    return answer.status_code, body


def test_registering_and_logging_in_gives_a_working_token(db: None) -> None:
    assert Rest().post("/auth/register", SENT).status_code == 201
    tokens = Rest().post("/auth/login", SENT).json()
    assert set(tokens) == {"access", "refresh", "expires_in", "token_type"}
    me = Rest(tokens["access"]).get("/auth/me").json()
    assert me["email"] == "dora@example.org"
    assert me["scopes"] == ["account", "evolve", "read", "report", "write"]


def test_registering_answers_the_same_for_a_known_address(db: None) -> None:
    first = without_ids(Rest().post("/auth/register", SENT))
    again = without_ids(Rest().post("/auth/register", {**SENT, "password": "another " + PASSWORD}))
    assert first == again


def test_a_failed_login_answers_the_same_for_a_known_address(alice: User) -> None:
    answers = [
        without_ids(Rest().post("/auth/login", {"email": email, "password": "wrong password"}))
        for email in (alice.email, "nobody@example.org")
    ]
    assert answers[0] == answers[1]
    assert answers[0][0] == 401


def test_the_sixth_login_in_a_minute_is_rate_limited(alice: User, frozen_rate_window: None) -> None:
    body = {"email": alice.email, "password": "wrong password"}
    answers = [Rest().post("/auth/login", body) for _ in range(6)]
    statuses = [answer.status_code for answer in answers]
    assert statuses[:5] == [401] * 5
    assert statuses[5] == 429
    assert 1 <= int(answers[5]["Retry-After"]) <= 60
    assert answers[5].json()["error"]["code"] == "rate_limited"


def test_a_refresh_token_works_once_over_rest(alice: User) -> None:
    body = {"email": alice.email, "password": PASSWORD}
    refresh = {"refresh": Rest().post("/auth/login", body).json()["refresh"]}
    assert Rest().post("/auth/refresh", refresh).status_code == 200
    assert Rest().post("/auth/refresh", refresh).status_code == 401


def test_logging_out_ends_the_access_token_too(alice: User) -> None:
    body = {"email": alice.email, "password": PASSWORD}
    tokens = Rest().post("/auth/login", body).json()
    assert Rest().post("/auth/logout", {"refresh": tokens["refresh"]}).status_code == 204
    assert Rest(tokens["access"]).get("/auth/me").status_code == 401


def test_a_stale_credential_does_not_stop_a_login(alice: User) -> None:
    body = {"email": alice.email, "password": PASSWORD}
    assert Rest("stale").post("/auth/login", body).status_code == 200


def test_a_new_keys_secret_is_shown_once_and_works(alice: User) -> None:
    rest = Rest.of(alice)
    made = rest.post("/auth/api-keys", {"name": "agent", "scopes": ["read"]}).json()
    assert Rest(made["key"]).get("/auth/me").json()["api_key"] == "agent"
    for path in ("/auth/api-keys", f"/auth/api-keys/{made['id']}"):
        assert made["key"] not in rest.get(path).content.decode()


def test_a_key_is_changed_rotated_and_revoked(alice: User) -> None:
    rest = Rest.of(alice)
    made = rest.post("/auth/api-keys", {"name": "agent", "scopes": ["read"]}).json()
    path = f"/auth/api-keys/{made['id']}"
    assert rest.patch(path, {"name": "renamed"}).json()["name"] == "renamed"
    fresh = rest.post(f"{path}/rotate", {"overlap_hours": 0}).json()
    assert Rest(made["key"]).get("/auth/me").status_code == 401
    assert rest.delete(f"/auth/api-keys/{fresh['id']}").status_code == 204
    assert Rest(fresh["key"]).get("/auth/me").status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        {"scopes": ["read"]},
        {"name": "a", "scopes": []},
        {"name": "a", "scopes": ["account"]},
        {"name": "a", "scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z"},
        {"name": "a", "scopes": ["read"], "playbook_ids": ["x"]},
    ],
)
def test_an_invalid_key_is_refused(alice: User, body: dict[str, Any]) -> None:
    answer = Rest.of(alice).post("/auth/api-keys", body)
    assert answer.status_code == 400
    assert answer.json()["error"]["fields"]
    assert not ApiKey.objects.exists()
