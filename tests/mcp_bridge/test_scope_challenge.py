"""A connected app hears which scopes it needs; a list it gets as far as it goes."""

import json
from typing import Any

import pytest
from django.db import connection
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Connection

from accounts.models import ConnectedApp, User
from core.security.scopes import Principal, Scope
from mcp_bridge.protocol.auth import PRINCIPAL_KEY
from mcp_bridge.transport.request_guard import JsonRpcBodyGuard
from mcp_bridge.transport.scope_challenge import ScopeChallenge
from tests.harness.mcp_requests import Request as Message
from tests.harness.mcp_requests import prompt, tool

pytestmark = pytest.mark.skipif(connection.vendor != "sqlite", reason="no database changes this")


async def echo(scope: Connection, receive: Receive, send: Send) -> None:
    """The protocol behind the door: it gets the body as it came."""
    body = await Request(scope, receive).json()
    await JSONResponse(body)(scope, receive, send)


def told(user: User, scopes: set[Scope], message: Message, *, by_app: bool = True) -> Any:
    app = ConnectedApp(user=user) if by_app else None
    principal = Principal(user, frozenset(scopes), app=app)

    async def known(scope: Connection, receive: Receive, send: Send) -> None:
        inner: ASGIApp = JsonRpcBodyGuard(ScopeChallenge(echo))
        await inner({**scope, PRINCIPAL_KEY: principal}, receive, send)

    method, params = message
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return TestClient(known).post("/mcp", content=json.dumps(body))


@pytest.mark.parametrize(
    ("message", "needed"),
    [
        (tool("report_outcome"), "write"),
        (tool("trigger_evolution"), "evolve"),
        (prompt("finish_task"), "write"),
    ],
)
def test_an_app_hears_every_scope_that_it_needs(alice: User, message: Message, needed: str) -> None:
    answer = told(alice, {Scope.READ}, message)
    assert answer.status_code == 403
    challenge = answer.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert all(scope in challenge for scope in ("read", needed))


@pytest.mark.parametrize(
    "message",
    [
        ("tools/list", {}), ("prompts/list", {}), ("resources/list", {}),
        tool("no_such"), tool("report_outcome"), ("tools/call", {"name": ["x"]}),
    ],
)  # fmt: skip
def test_what_it_may_do_and_what_is_not_ours_to_judge_passes_with_its_body(
    alice: User, message: Message
) -> None:
    answer = told(alice, {Scope.WRITE}, message)
    assert (answer.status_code, answer.json()["method"]) == (200, message[0])


def test_a_resource_needs_to_read(alice: User) -> None:
    message = ("resources/read", {"uri": "playbook://x"})
    assert told(alice, {Scope.WRITE}, message).status_code == 403
    assert told(alice, {Scope.READ}, message).status_code == 200
    assert told(alice, {Scope.WRITE}, message, by_app=False).status_code == 200
