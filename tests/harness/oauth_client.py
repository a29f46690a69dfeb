"""One client's way through: register, ask, redeem, refresh; each step by the addresses it uses."""

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from django.test import Client

from accounts.models import User
from core.security.scopes import Principal
from mcp_bridge.protocol.auth import authenticate_token
from tests.harness.clients import log_in_client

HOST = "localhost:8000"
ORIGIN = f"http://{HOST}"
RESOURCE = f"{ORIGIN}/mcp"
CALLBACK = "http://127.0.0.1:9876/callback"
VERIFIER = "v" * 50
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode()[:-1]
SCOPES = "read write evolve"


def browser(user: User | None = None, *, host: str = HOST, csrf: bool = False) -> Client:
    """A browser at our address, logged in or not."""
    client = Client(enforce_csrf_checks=csrf, HTTP_HOST=host)
    if user is not None:
        log_in_client(client, user)
    return client


def register(**metadata: Any) -> Any:
    """The answer of the registration endpoint to a public client with this metadata."""
    sent = {
        "client_name": "Test agent",
        "redirect_uris": [CALLBACK],
        "token_endpoint_auth_method": "none",
    } | metadata
    return browser().post("/oauth/register", json.dumps(sent), content_type="application/json")


def query_of(address: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(address).query))


@dataclass
class OAuthClient:
    """A registered client, and the browser of the person who uses it."""

    user: User
    client_id: str = ""
    asked: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.client_id = self.client_id or register().json()["client_id"]
        self.browser = browser(self.user)

    def address(self, **changes: Any) -> str:
        """Where it sends the browser; None leaves a parameter out, a list repeats it."""
        asked: dict[str, Any] = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": CALLBACK,
            "scope": SCOPES,
            "state": "st4te",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "resource": RESOURCE,
        }
        asked |= self.asked | changes
        kept = {name: value for name, value in asked.items() if value is not None}
        return f"/oauth/authorize?{urlencode(kept, doseq=True)}"

    def consent(self, *, scopes: str = SCOPES, answer: str = "allow", **changes: Any) -> Any:
        """The answer to the person's answer."""
        sent = {"scopes": scopes.split(), "answer": answer}
        return self.browser.post(self.address(**changes), sent)

    def code(self, **changes: Any) -> str:
        return query_of(self.consent(**changes)["Location"])["code"]

    def token(self, **sent: Any) -> Any:
        """The answer of the token endpoint."""
        data = {"client_id": self.client_id, **sent}
        kept = {name: value for name, value in data.items() if value is not None}
        return browser().post("/oauth/token", kept)

    def redeem(self, code: str, **changes: Any) -> Any:
        sent = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": CALLBACK,
            "code_verifier": VERIFIER,
        }
        return self.token(**sent | changes)

    def refresh(self, token: str, **changes: Any) -> Any:
        return self.token(**{"grant_type": "refresh_token", "refresh_token": token} | changes)

    def tokens(self, **changes: Any) -> dict[str, Any]:
        """A fresh pair, consented to with these changes."""
        answer = self.redeem(self.code(**changes))
        assert answer.status_code == 200, answer.content
        pair: dict[str, Any] = answer.json()
        return pair


def who(token: str, *, host: str = HOST, scheme: str = "http") -> Principal:
    """Whom /mcp sees behind this token. Raises NotAuthenticated."""
    headers = [(b"host", host.encode()), (b"authorization", f"Bearer {token}".encode())]
    return authenticate_token(token, {"type": "http", "scheme": scheme, "headers": headers})
