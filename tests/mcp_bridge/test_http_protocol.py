"""Requests as bytes on a socket: endless and unclear ones are refused, odd ones answered."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPResponse
from urllib.parse import urlsplit

import pytest

from accounts.models import User
from config.web.http_protocol import MAX_UNREAD_BYTES
from tests.factories import make_key

# asyncio reads 256 KB at once, and what a read holds behind the end of a head is not counted.
LONG = "x" * (256 * 1024 + 2 * MAX_UNREAD_BYTES)
GET = "GET /healthz HTTP/1.1\r\nHost: {host}\r\n"
CHUNKED = "POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
ENDLESS = {
    "one header": GET + "X-Long: " + LONG,
    "many headers": GET + "X-Short: y\r\n" * 40_000,
    "the address": "GET /" + LONG,
    "a trailer": CHUNKED + "0\r\nX-Long: " + LONG,
    "a chunk's extension": CHUNKED + "1;" + LONG,
}


@contextmanager
def connected(url: str) -> Iterator[tuple[socket.socket, str]]:
    where = urlsplit(url)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=20) as wire:
        yield wire, where.netloc


def status(wire: socket.socket, request: str) -> int:
    wire.sendall(request.encode())
    with HTTPResponse(wire) as response:
        response.begin()
        response.read()
        return response.status


@pytest.mark.parametrize("what", ENDLESS)
def test_what_does_not_end_is_refused(live_url: str, what: str) -> None:
    with connected(live_url) as (wire, host):
        with suppress(ConnectionError):  # closed before it has read all
            wire.sendall(ENDLESS[what].format(host=host).encode())
        assert wire.recv(12) == b"HTTP/1.1 400"


def test_a_head_below_the_limit_is_answered_each_time(live_url: str) -> None:
    with connected(live_url) as (wire, host):
        head = f"{GET.format(host=host)}X-Long: {LONG[:60_000]}\r\n\r\n"
        assert [status(wire, head) for _ in range(3)] == [200, 200, 200]


def test_an_offer_of_http_2_is_ignored(live_url: str) -> None:
    """Java's client makes it with its first request on a connection."""
    offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    body = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
    with connected(live_url) as (wire, host):
        for head in (offer, ""):
            post = f"POST /mcp HTTP/1.1\r\nHost: {host}\r\n{head}Content-Length: {len(body)}\r\n"
            assert status(wire, f"{post}\r\n{body}") == 401


def test_a_trailer_brings_no_credential(live_url: str, alice: User) -> None:
    """A proxy that checks heads may pass it on unread."""
    token = make_key(alice)[1]
    for path in ("/mcp", "/api/v1/playbooks"):
        with connected(live_url) as (wire, host):
            head = CHUNKED.format(host=host).replace("POST /", f"POST {path}")
            assert status(wire, f"{head}0\r\nAuthorization: Bearer {token}\r\n\r\n") == 401


def test_blanks_after_a_value_are_none_of_it(live_url: str) -> None:
    with connected(live_url) as (wire, host):
        assert (
            status(wire, f"POST /mcp HTTP/1.1\r\nHost: {host} \t\r\nContent-Length: 0\r\n\r\n")
            == 401
        )


def test_of_requests_sent_ahead_one_waits_and_no_more_are_read(live_url: str) -> None:
    with connected(live_url) as (wire, host):
        wire.sendall(f"{GET.format(host=host)}\r\n".encode() * 5_000)
        answers = b"".join(iter(lambda: wire.recv(65_536), b""))
    assert 1 <= answers.count(b"HTTP/1.1 200 ") <= 5
    assert answers.lower().count(b"connection: close") == 1


def test_who_leaves_behind_requests_sent_ahead_leaves_no_error(
    live_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        with connected(live_url) as (wire, host):
            wire.sendall(f"{GET.format(host=host)}\r\n".encode() * 2)
    with connected(live_url) as (wire, host):
        assert status(wire, f"{GET.format(host=host)}\r\n") == 200
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


@pytest.mark.parametrize("hosts", ["", "Host: {host}\r\nHost: evil.example\r\n"])
@pytest.mark.parametrize("path", ["/healthz", "/mcp"])
def test_a_request_names_one_host(live_url: str, path: str, hosts: str) -> None:
    with connected(live_url) as (wire, host):
        assert status(wire, f"GET {path} HTTP/1.1\r\n{hosts.format(host=host)}\r\n") == 400


@pytest.mark.parametrize("version", ["", "HTTP/0.9", "HTTP/2.0"])
def test_other_versions_are_refused(live_url: str, version: str) -> None:
    with connected(live_url) as (wire, host):
        assert status(wire, f"GET /healthz {version}\r\nHost: {host}\r\n\r\n") == 400
