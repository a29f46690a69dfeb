"""A connected app without a scope is challenged with the scopes it needs; lists pass."""

import json
from typing import Any

import pytest
from django.db import connection
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Send
from starlette.types import Scope as Connection

from accounts.models import ConnectedApp, User
from core.security.scopes import Principal, Scope
from mcp_bridge import request_guard
from mcp_bridge.protocol.auth import PRINCIPAL_KEY
from tests.harness.mcp_requests import Request as Message
from tests.harness.mcp_requests import tool

pytestmark = pytest.mark.skipif(connection.vendor != "sqlite", reason="no database changes this")


async def echo(scope: Connection, receive: Receive, send: Send) -> None:
    """Stands for the protocol: it receives the body unchanged."""
    assert scope[PRINCIPAL_KEY]().user
    body = await Request(scope, receive).json()
    await JSONResponse(body)(scope, receive, send)


def post_as(user: User, scopes: set[Scope], message: Message, *, by_app: bool = True) -> Any:
    app = ConnectedApp(user=user) if by_app else None
    principal = Principal(user, frozenset(scopes), app=app)
    method, params = message
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(request_guard, "_authenticate", lambda token, scope: principal)
        patch.setattr(request_guard, "should_record", lambda activity: False)
        return TestClient(request_guard.RequestGuard(echo)).post("/mcp", content=json.dumps(body))


@pytest.mark.parametrize(
    ("message", "needed"),
    [
        (tool("report_outcome"), "report"),
        (tool("trigger_evolution"), "evolve"),
    ],
)
def test_an_app_is_challenged_with_every_scope_it_needs(
    alice: User, message: Message, needed: str
) -> None:
    response = post_as(alice, {Scope.READ}, message)
    assert response.status_code == 403
    challenge = response.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert all(scope in challenge for scope in ("read", needed))


@pytest.mark.parametrize(
    "message",
    [
        ("tools/list", {}),
        tool("no_such"), tool("report_outcome"), ("tools/call", {"name": ["x"]}),
    ],
)  # fmt: skip
def test_permitted_and_unknown_requests_pass_with_their_body(alice: User, message: Message) -> None:
    response = post_as(alice, {Scope.REPORT}, message)
    assert (response.status_code, response.json()["method"]) == (200, message[0])


def test_a_key_gets_the_tools_own_error(alice: User) -> None:
    assert post_as(alice, {Scope.READ}, tool("report_outcome"), by_app=False).status_code == 200
