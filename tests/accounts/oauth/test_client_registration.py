"""Dynamic client registration: metadata is validated, and little of it is stored."""

import json
from typing import Any

import pytest
from oauth2_provider.models import Application
from pytest_django import Settings

from accounts.keys.key_format import digest
from accounts.models import User
from accounts.oauth.redirect_uris import redirect_uri_problem
from tests.harness.oauth_client import CALLBACK, OAuthClient, browser, register


def test_a_client_gets_an_id_and_its_scopes(db: None) -> None:
    answer = register()
    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store")
    told = answer.json()
    assert told["redirect_uris"] == [CALLBACK]
    assert told["token_endpoint_auth_method"] == "none"
    assert not {"client_secret", "registration_access_token"} & told.keys()


def test_a_secret_is_shown_once_and_stored_as_a_digest(db: None) -> None:
    told = register(token_endpoint_auth_method="client_secret_basic").json()
    assert Application.objects.get().client_secret == digest(told["client_secret"])


def test_other_metadata_is_not_stored(db: None) -> None:
    register(contacts=["a@b.example"], logo_uri="https://canary.example/x.png", jwks={"keys": []})
    row = Application.objects.values().get()
    assert "canary" not in str(row)


@pytest.mark.parametrize(
    "uri",
    [
        "http://example.com/callback",
        "http://127.0.0.1.evil.example/",
        "http://0.0.0.0/callback",
        "ftp://example.com/",
        "javascript:alert(1)",
        "data:text/html,x",
        "cursor://anysphere/callback",
        "https://user:pass@example.com/",
        "https://example.com/#fragment",
        "https://exa mple.com/",
        "https://example.com\\@evil.example/",
        "https://ex;ample.com/",
        "https://example.com:99999/",
        "https://example.com:0/",
        "https:///callback",
        "https://[::1",
        "https://éxample.com/",
        "https://example.com/\nx",
        "//example.com",
        "/callback",
        "",
        "https://example.com/" + "a" * 500,
    ],
)
def test_an_unsafe_redirect_uri_is_refused(uri: str) -> None:
    assert redirect_uri_problem(uri)


@pytest.mark.parametrize("uri", ["http://evil.example/", 7, None])
def test_one_unsafe_redirect_uri_refuses_the_client(db: None, uri: object) -> None:
    answer = register(redirect_uris=[CALLBACK, uri])
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_redirect_uri")
    assert not Application.objects.exists()


@pytest.mark.parametrize(
    "uri",
    [
        "https://claude.ai/api/mcp/auth_callback",
        "https://chatgpt.com/connector_platform_oauth_redirect",
        "https://vscode.dev/redirect",
        "http://localhost:3000/callback?x=1",
        "http://[::1]:1/",
        "http://127.0.0.1/callback",
    ],
)
def test_redirect_uris_of_known_clients_are_accepted(uri: str) -> None:
    assert redirect_uri_problem(uri) == ""


def test_an_operator_may_allow_the_scheme_of_an_app(db: None, settings: Settings) -> None:
    settings.OAUTH_APP_SCHEMES = ["cursor"]
    uri = "cursor://anysphere.cursor-mcp/oauth/callback"
    assert register(redirect_uris=[uri]).status_code == 201


@pytest.mark.parametrize(
    "metadata",
    [
        {"redirect_uris": []},
        {"redirect_uris": None},
        {"redirect_uris": "https://example.com/"},
        {"redirect_uris": [CALLBACK] * 11},
        {"grant_types": ["client_credentials"]},
        {"grant_types": "authorization_code"},
        {"response_types": ["token"]},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"token_endpoint_auth_method": ["none"]},
    ],
)
def test_invalid_metadata_is_refused(db: None, metadata: dict[str, Any]) -> None:
    assert register(**metadata).status_code == 400
    assert not Application.objects.exists()


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 9000, b"null", b'"x"'])
def test_a_body_that_is_no_object_is_refused(db: None, body: bytes) -> None:
    answer = browser().post("/oauth/register", body, content_type="application/json")
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")


def test_a_long_body_is_refused(db: None) -> None:
    assert register(client_name="x" * 20_000).status_code == 413


def test_names_are_truncated_and_cleaned(db: None) -> None:
    register(client_name="Evil\u202e\x00\n  name" + "x" * 200)
    name = Application.objects.get().name
    assert name.startswith("Evil name") and len(name) == 100


def test_a_name_is_text_on_the_page(alice: User) -> None:
    told = register(client_name="<script>alert(1)</script>").json()
    app = OAuthClient(alice, told["client_id"])
    page = app.browser.get(app.address()).content.decode()
    assert "<script>alert" not in page


def test_registrations_are_rate_limited_per_address(db: None, settings: Settings) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"register_client": "3/h"}
    assert [register().status_code for _ in range(4)] == [201, 201, 201, 429]
    answer = register()
    assert int(answer["Retry-After"]) > 0
    assert answer.json()["error"] == "temporarily_unavailable"
    assert Application.objects.count() == 3


def test_only_a_post_registers(db: None) -> None:
    answer = browser().get("/oauth/register")
    assert (answer.status_code, answer["Allow"]) == (405, "OPTIONS, POST")


def test_pages_of_any_origin_may_register(db: None) -> None:
    answer = browser().options("/oauth/register", headers={"Origin": "https://inspector.example"})
    assert (answer.status_code, answer["Access-Control-Allow-Origin"]) == (204, "*")
    assert "MCP-Protocol-Version" in answer["Access-Control-Allow-Headers"]


def test_registering_needs_no_csrf_token(db: None) -> None:
    sent = json.dumps({"redirect_uris": [CALLBACK]})
    answer = browser(csrf=True).post("/oauth/register", sent, content_type="application/json")
    assert answer.status_code == 201
