"""OAuth metadata is correct where OAuth works, and absent where it is disabled."""

from typing import Any

import pytest
from pytest_django import Settings

from core.errors import NotAuthenticated
from mcp_bridge.protocol.auth import STANDALONE_KEY, www_authenticate
from tests.harness.oauth_client import ORIGIN, RESOURCE, OAuthClient, browser, who

SERVER = "/.well-known/oauth-authorization-server"
DOCUMENT = "/.well-known/oauth-protected-resource"
ADDRESSES = [
    *(SERVER, f"{SERVER}/mcp", DOCUMENT, f"{DOCUMENT}/mcp"),
    *("/oauth/authorize", "/oauth/token", "/oauth/register", "/oauth/revoke"),
]


def connection(host: str, scheme: str = "http") -> dict[str, Any]:
    return {"type": "http", "scheme": scheme, "headers": [(b"host", host.encode())]}


@pytest.mark.parametrize("address", [SERVER, f"{SERVER}/mcp"])
def test_the_server_metadata_lists_its_capabilities(db: None, address: str) -> None:
    answer = browser().get(address)
    told = answer.json()
    assert told["issuer"] == ORIGIN
    assert told["authorization_endpoint"] == f"{ORIGIN}/oauth/authorize"
    assert told["code_challenge_methods_supported"] == ["S256"]
    assert told["grant_types_supported"] == ["authorization_code", "refresh_token"]
    assert told["scopes_supported"] == ["read", "report", "write", "evolve"]
    assert told["authorization_response_iss_parameter_supported"] is True
    assert answer["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("address", [DOCUMENT, f"{DOCUMENT}/mcp"])
def test_the_resource_metadata_names_the_authorization_server(db: None, address: str) -> None:
    told = browser().get(address).json()
    assert told["resource"] == RESOURCE
    assert told["authorization_servers"] == [ORIGIN]
    assert told["bearer_methods_supported"] == ["header"]


def test_every_endpoint_in_the_metadata_exists(db: None) -> None:
    told = browser().get(SERVER).json()
    for name in ("token", "registration", "revocation"):
        path = told[f"{name}_endpoint"].removeprefix(ORIGIN)
        assert browser().post(path).status_code in {400, 401}


def test_disabled_oauth_has_no_endpoints(app: OAuthClient, settings: Settings) -> None:
    settings.OAUTH_ENABLED = False
    for address in ADDRESSES:
        for method in ("get", "post"):
            assert getattr(app.browser, method)(address).status_code == 404


def test_disabled_oauth_accepts_no_token(app: OAuthClient, settings: Settings) -> None:
    token = app.tokens()["access_token"]
    settings.OAUTH_ENABLED = False
    with pytest.raises(NotAuthenticated):
        who(token)
    assert "resource_metadata" not in www_authenticate(connection("localhost:8000"))


def test_plain_http_is_not_enough_for_other_machines(db: None, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["ace.example.org"]
    assert browser(host="ace.example.org").get(SERVER).status_code == 404
    assert "resource_metadata" not in www_authenticate(connection("ace.example.org"))


def test_oauth_is_available_behind_a_tls_proxy(db: None, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["ace.example.org"]
    settings.HTTPS, settings.SECURE_PROXY_SSL_HEADER = True, ("HTTP_X_FORWARDED_PROTO", "https")
    client = browser(host="ace.example.org")
    told = client.get(SERVER, HTTP_X_FORWARDED_PROTO="https").json()
    assert told["issuer"] == "https://ace.example.org"
    at = connection("ace.example.org:443")
    at["headers"].append((b"x-forwarded-proto", b"https"))
    document = "https://ace.example.org/.well-known/oauth-protected-resource/mcp"
    assert www_authenticate(at).endswith(f'resource_metadata="{document}"')


def test_all_urls_use_the_public_url(app: OAuthClient, settings: Settings) -> None:
    settings.PUBLIC_URL = "https://ace.example.org"
    assert browser().get(SERVER).json()["issuer"] == "https://ace.example.org"
    app.asked = {"resource": "https://ace.example.org/mcp"}
    token = app.tokens()["access_token"]
    assert who(token, host="10.0.0.7:8001").user == app.user


def test_mcp_alone_names_documents_only_at_a_public_url(settings: Settings) -> None:
    alone = connection("localhost:8001") | {STANDALONE_KEY: True}
    assert "resource_metadata" not in www_authenticate(alone)
    settings.PUBLIC_URL = "https://ace.example.org"
    assert "https://ace.example.org/.well-known" in www_authenticate(alone)
