"""Clients known by a metadata document: what is fetched, for whom, and never from where."""

import json
import socket
from datetime import timedelta
from typing import Any

import httpcore2
import pytest
from django.utils import timezone
from oauth2_provider.models import Application
from pytest_django import Settings

from accounts.models import User
from core.http import safe_http
from tests.harness.oauth_client import CALLBACK, OAuthClient, browser, who

CLIENT = "https://agent.example/client.json"


def document(**changes: Any) -> dict[str, Any]:
    return {
        "client_id": CLIENT,
        "client_name": "Known agent",
        "redirect_uris": [CALLBACK],
    } | changes


class Net:
    """A fake network: records requests, and gives one response to all of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.address = "93.184.216.34"
        self.bytes = b""
        monkeypatch.setattr(socket, "getaddrinfo", self.resolve)
        monkeypatch.setattr(
            httpcore2.SyncBackend, "connect_tcp", lambda _, *to, **how: self.connect(*to)
        )

    def says(self, body: Any, *, status: int = 200, **headers: str) -> None:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(text)}"]
        known = {"Content-Type": "application/json"} | headers
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in known.items()]
        self.bytes = "\r\n".join([*lines, "", ""]).encode() + text

    def resolve(self, host: str, port: int, **hints: object) -> list[Any]:
        self.asked.append(host)
        return [(0, 0, 0, "", (self.address, port))]

    def connect(self, address: str, port: int, *rest: object) -> Any:
        self.asked.append(f"{address}:{port}")
        return httpcore2.MockStream([self.bytes])


@pytest.fixture
def net(monkeypatch: pytest.MonkeyPatch) -> Net:
    made = Net(monkeypatch)
    made.says(document())
    return made


@pytest.fixture
def agent(alice: User, net: Net) -> OAuthClient:
    return OAuthClient(alice, CLIENT)


def test_a_client_is_known_by_its_document(agent: OAuthClient, net: Net) -> None:
    page = agent.browser.get(agent.address()).content.decode()
    assert "Known agent" in page and "agent.example" in page
    assert net.asked == ["agent.example", "93.184.216.34:443"]
    assert who(agent.tokens()["access_token"]).user == agent.user
    assert len(net.asked) == 2


def test_no_document_is_fetched_for_anonymous_visitors(agent: OAuthClient, net: Net) -> None:
    assert browser().get(agent.address()).status_code == 302
    agent.token(grant_type="authorization_code", code="x", code_verifier="y" * 50)
    assert net.asked == []


def test_a_known_client_gets_its_error_after_login(agent: OAuthClient, net: Net) -> None:
    agent.browser.get(agent.address())
    address = agent.address(scope="admin")
    assert browser().get(address)["Location"].startswith("/login?next=/oauth/authorize")
    location = agent.browser.get(address)["Location"]
    assert location.startswith(f"{CALLBACK}?error=invalid_scope")


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.1"),
        *("::1", "fe80::1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::"),
        *("224.0.0.1", "ff02::1", "2001:0:0:0:0:0:f5ff:fffe"),
    ],
)
def test_private_and_public_addresses_are_distinguished(address: str) -> None:
    assert not safe_http.is_public_address(address)


def test_an_internal_address_is_never_requested(agent: OAuthClient, net: Net) -> None:
    net.address = "169.254.169.254"
    response = agent.browser.get(agent.address())
    assert response.status_code == 400
    assert net.address not in response.content.decode()
    assert net.asked == ["agent.example"]


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:4700::1111", "::ffff:93.184.216.34"])
def test_a_public_address_is_accepted(address: str) -> None:
    assert safe_http.is_public_address(address)


def test_an_operator_may_allow_an_internal_host(
    agent: OAuthClient, net: Net, settings: Settings
) -> None:
    settings.PRIVATE_HOSTS = ["agent.example"]
    net.address = "10.0.0.1"
    assert agent.browser.get(agent.address()).status_code == 200


@pytest.mark.parametrize(
    "client_id",
    [
        "https://agent.example",
        "https://agent.example/",
        "https://agent.example/../x",
        "https://user@agent.example/x",
        "https://agent.example/#x",
        "https://agent.example:0/x",
        "https://agent.example/" + "x" * 250,
        "https://10.0.0.1\\@agent.example/x",
    ],
)
def test_invalid_client_ids_are_refused(agent: OAuthClient, net: Net, client_id: str) -> None:
    assert agent.browser.get(agent.address(client_id=client_id)).status_code == 400
    assert net.asked == []


@pytest.mark.parametrize(
    "body",
    [
        document(client_id="https://other.example/client.json"),
        document(client_secret="x"),
        document(token_endpoint_auth_method="client_secret_post"),
        document(redirect_uris=["http://evil.example/"]),
        document(grant_types=["implicit"]),
        b"<html>",
        b"[]",
        b"{" + b" " * 20_000 + b"}",
    ],
)
def test_an_invalid_document_creates_no_client(agent: OAuthClient, net: Net, body: object) -> None:
    net.says(body)
    assert agent.browser.get(agent.address()).status_code == 400
    assert not Application.objects.exists()


def test_a_redirect_is_not_followed(agent: OAuthClient, net: Net) -> None:
    net.says(document(), status=302, Location="https://elsewhere.example/")
    assert agent.browser.get(agent.address()).status_code == 400
    assert "elsewhere.example" not in net.asked


def test_only_json_is_read(agent: OAuthClient, net: Net) -> None:
    net.says(document(), Content_Type="text/html")
    assert agent.browser.get(agent.address()).status_code == 400


def test_a_stale_document_is_fetched_again(agent: OAuthClient, net: Net) -> None:
    agent.browser.get(agent.address())
    net.says(document(client_name="New name"))
    agent.browser.get(agent.address())
    assert Application.objects.get().name == "Known agent"
    Application.objects.update(cimd_expires_at=timezone.now())
    agent.browser.get(agent.address())
    assert Application.objects.get().name == "New name"


def test_a_stale_document_is_used_when_fetching_fails(agent: OAuthClient, net: Net) -> None:
    agent.browser.get(agent.address())
    Application.objects.update(cimd_expires_at=timezone.now())
    net.says(b"", status=500)
    assert agent.browser.get(agent.address()).status_code == 200


@pytest.mark.parametrize(
    ("header", "minutes"),
    [
        ("max-age=60", 5),
        ("max-age=3600", 60),
        ("max-age=999999", 1440),
        ("no-store", 5),
        ("", 1440),
    ],
)
def test_the_lifetime_of_a_document_is_bounded(
    agent: OAuthClient, net: Net, header: str, minutes: int
) -> None:
    net.says(document(), Cache_Control=header)
    agent.browser.get(agent.address())
    left = Application.objects.get().cimd_expires_at - timezone.now()
    assert abs(left - timedelta(minutes=minutes)) < timedelta(seconds=20)


def test_document_fetches_are_rate_limited_per_user(
    agent: OAuthClient, net: Net, settings: Settings
) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"register_client": "2/h"}
    addresses = [agent.address(client_id=f"https://agent.example/{n}") for n in range(3)]
    assert [agent.browser.get(one).status_code for one in addresses] == [400, 400, 429]


def test_without_documents_such_a_client_is_unknown(
    agent: OAuthClient, net: Net, settings: Settings
) -> None:
    settings.OAUTH_CLIENT_DOCUMENTS = False
    assert agent.browser.get(agent.address()).status_code == 400
    assert net.asked == []
    told = browser().get("/.well-known/oauth-authorization-server").json()
    assert told["client_id_metadata_document_supported"] is False


def test_a_slow_host_is_abandoned_at_the_deadline(net: Net) -> None:
    with pytest.raises(safe_http.HostUnreachable):
        safe_http.fetch(CLIENT, max_bytes=100, seconds=0)


def test_only_https_is_requested(net: Net) -> None:
    with pytest.raises(safe_http.HostUnreachable):
        safe_http.fetch("http://agent.example/x", max_bytes=100, seconds=1)
    assert net.asked == []
