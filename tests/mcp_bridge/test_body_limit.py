"""Bodies over the size limit, declared and chunked, at pages, REST and MCP."""

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import pytest
from django.conf import settings

from accounts.models import User
from tests.factories import make_key
from tests.harness.live_server import Agent

TEN_MB = 10 * 1024 * 1024


def chunks(size: int) -> Iterator[bytes]:
    for _ in range(size // 65_536):
        yield b" " * 65_536


@pytest.mark.parametrize("path", ["/mcp", "/", "/api/v1/playbooks"])
@pytest.mark.parametrize("chunked", [False, True], ids=["declared", "chunked"])
def test_ten_megabytes_are_refused_at_every_interface(
    live_url: str, alice: User, path: str, chunked: bool
) -> None:
    headers = {"Authorization": f"Bearer {make_key(alice)[1]}"}
    body = chunks(TEN_MB) if chunked else b" " * TEN_MB
    with httpx2.Client(trust_env=False, timeout=20, headers=headers) as client:
        response = client.post(f"{live_url}{path}", content=body)
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "too_large"
    assert response.json()["request_id"] == response.headers["x-request-id"]


def test_a_body_within_the_limit_passes(agent: Agent) -> None:
    notes = "x" * (settings.MAX_BODY_BYTES - 10_000)
    code, _text = agent.refused("create_playbook", name=notes)
    assert code in {"invalid", "too_large"}


def test_a_last_small_chunk_over_the_limit_is_refused_at_once(live_url: str) -> None:
    sizes = (settings.MAX_BODY_BYTES, 1)
    with httpx2.Client(trust_env=False, timeout=10) as client:
        response = client.post(live_url, content=(b" " * size for size in sizes))
    assert response.status_code == 413


def test_expect_100_continue_is_refused_before_the_body_is_sent(live_url: str) -> None:
    where = urlsplit(live_url)
    head = f"POST / HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Length: {TEN_MB}\r\n"
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=10) as wire:
        wire.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
        assert wire.recv(200).startswith(b"HTTP/1.1 413")
