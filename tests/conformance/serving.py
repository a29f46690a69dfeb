"""Serves the whole application on its own database to the suite's client.

The suite cannot send a credential, so each request gets one here, before our checks of Host,
Origin, key, scope and body, which all run.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management import call_command
from starlette.types import ASGIApp, Receive, Scope, Send

from accounts.keys.api_keys import create_api_key
from accounts.models import User
from config.asgi import (
    Application,
    BodyLimitASGIMiddleware,
    RequestIdASGIMiddleware,
    build_application,
)
from core.security.scopes import KEY_SCOPES, Principal
from mcp_bridge.server import build_http_app
from playbooks.services.creation import import_playbook
from tests.conformance.fixtures_server import build_fixtures_server
from tests.factories import ACE_TEXT
from tests.harness.live_server import serving


class WithKey:
    """Adds the credential to each request: the suite has no option for it."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.header = app, (b"authorization", f"Bearer {token}".encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], self.header]}
        await self.app(scope, receive, send)


def prepare() -> str:
    """Create tables and a user with a playbook; returns the token of their key."""
    call_command("migrate", verbosity=0)
    user = User.objects.create_user("conformance@example.org", "a long enough password")
    import_playbook(by=Principal.of(user), name="Fixing tests", content=ACE_TEXT)
    return create_api_key(user=user, name="suite", scopes=KEY_SCOPES)[1]


@contextmanager
def served_plain() -> Iterator[str]:
    """The MCP URL of the whole application, for clients that send a credential themselves."""
    with serving(build_application()) as url:
        yield f"{url}/mcp"


@contextmanager
def served(token: str, *, fixtures: bool) -> Iterator[str]:
    """The MCP URL: as in production, or with the suite's fixtures."""
    app = build_application()
    if fixtures:
        _add_fixtures(app)
    with serving(WithKey(app, token)) as url:
        yield f"{url}/mcp"


def _add_fixtures(app: Application) -> None:
    # Two things of older revisions need a session: a request of the server's to the client, and
    # its answer in a request of its own; and progress needs a stream. Our tools do neither.
    app.mcp = build_http_app(build_fixtures_server(), stateless=False)
    app.mcp_app = BodyLimitASGIMiddleware(RequestIdASGIMiddleware(app.mcp))
