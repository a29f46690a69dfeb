"""A small REST client for tests: one credential, JSON in and out."""

import json
from typing import Any

from django.test import Client

from accounts.keys.jwt_tokens import issue_tokens
from accounts.models import User
from core.security.scopes import Scope
from tests.factories import make_key

ROOT = "/api/v1"


class Rest:
    """`Rest.of(alice)` signs in with an access token, `Rest.key(alice, …)` with an API key."""

    def __init__(self, token: str = "") -> None:
        self.token = token
        self.client = Client(raise_request_exception=False)

    @classmethod
    def of(cls, user: User) -> "Rest":
        return cls(issue_tokens(user=user).access)

    @classmethod
    def key(cls, user: User, *scopes: Scope, **fields: Any) -> "Rest":
        if scopes:
            fields["scopes"] = scopes
        return cls(make_key(user, **fields)[1])

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The response; `body` is JSON unless it is bytes; underscores in header names are `-`."""
        data = body if isinstance(body, bytes) else json.dumps({} if body is None else body)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        return self.client.generic(
            method, ROOT + path, data, content_type="application/json", headers=sent
        )

    def get(self, path: str, **headers: str) -> Any:
        return self.send("GET", path, b"", **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.send("POST", path, body, **headers)

    def put(self, path: str, body: Any = None) -> Any:
        return self.send("PUT", path, body)

    def patch(self, path: str, body: Any = None) -> Any:
        return self.send("PATCH", path, body)

    def delete(self, path: str) -> Any:
        return self.send("DELETE", path, b"")
