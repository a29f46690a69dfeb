"""Calls of the REST API, with the standard library only: the hooks run without an installation."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote
from uuid import UUID

from ace.settings import Settings

USER_AGENT = "ace-client/1"


class Refused(Exception):
    """The server refused; the text is its message. `status` is the one of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_final(self) -> bool:
        """The same request would be refused again."""
        return self.status in {400, 404, 409, 410, 413, 415, 422}


class NotFound(Exception):
    """No playbook has this name."""


class Api:
    """The API of one server with one key."""

    def __init__(self, settings: Settings, *, seconds: float = 10) -> None:
        self.settings, self.seconds = settings, seconds

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """The JSON answer. Raises Refused, and OSError when the server cannot be reached."""
        data = None if body is None else json.dumps(body).encode()
        url = f"{self.settings.url}/api/v1{path}"
        request = urllib.request.Request(url, data, method=method)  # noqa: S310 - http(s) only
        # The key never goes to another host by a redirect.
        request.add_unredirected_header("Authorization", f"Bearer {self.settings.key}")
        request.add_header("Content-Type", "application/json")
        request.add_header("User-Agent", USER_AGENT)
        try:
            with urllib.request.urlopen(request, timeout=self.seconds) as answer:  # noqa: S310
                content = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(error.code, message_of(error)) from None
        return json.loads(content) if content else None

    def playbooks(self, query: str = "") -> list[dict[str, Any]]:
        """The playbooks that the key reads, starters too; at most 100."""
        found: list[dict[str, Any]]
        found = self.ask("GET", f"/playbooks?page_size=100&query={quote(query)}")["results"]
        return found

    def playbook_id(self, wanted: str) -> str:
        """The id of a playbook that is named by its id or its name. Raises NotFound."""
        try:
            return str(UUID(wanted))
        except ValueError:
            found = self.playbooks(wanted)
        same = [row["id"] for row in found if row["name"].casefold() == wanted.casefold()]
        if not same:
            raise NotFound(f"no playbook of yours is called “{wanted}” (ACE_PLAYBOOK or .ace.toml)")
        return str(same[0])

    def read(self, playbook: str, *, max_tokens: int | None = None) -> dict[str, Any]:
        """The advice of a playbook, and the serving_id to report with."""
        limit = f"?max_tokens={max_tokens}" if max_tokens else ""
        answer: dict[str, Any] = self.ask("GET", f"/playbooks/{self.playbook_id(playbook)}{limit}")
        return answer

    def report(self, playbook: str, outcome: dict[str, Any]) -> dict[str, Any]:
        """Store an outcome, a body of POST /playbooks/{id}/outcomes."""
        path = f"/playbooks/{self.playbook_id(playbook)}/outcomes"
        answer: dict[str, Any] = self.ask("POST", path, outcome)
        return answer


def message_of(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read(10_000))["error"]["message"])[:300]
    except (ValueError, KeyError, TypeError, OSError):
        return f"the server answered {error.code}"
