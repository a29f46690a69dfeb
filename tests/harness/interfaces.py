"""One verb at three doors: a page, REST and MCP, each answering in the same small vocabulary."""

from dataclasses import dataclass
from typing import Any, Protocol

import httpx2
from django.test import Client as Browser

from accounts.models import User
from playbooks.models import Playbook
from tests.factories import make_key
from tests.harness.clients import log_in_client
from tests.harness.live_server import Agent, live_mcp

KINDS = {
    400: "invalid",
    403: "forbidden",
    404: "not_found",
    409: "conflict",
    413: "too_large",
    422: "invalid",
    429: "rate_limited",
}
CONFLICTS = {"archived", "plan_limit", "idempotency_conflict", "not_active"}


@dataclass(frozen=True)
class Answer:
    """`kind` is ok, or how the door refused; `text` is what the caller read."""

    kind: str
    text: str


class Interface(Protocol):
    """The verbs that more than one interface offers."""

    def list_playbooks(self) -> Answer: ...
    def get_playbook(self, playbook: Playbook) -> Answer: ...
    def create_playbook(self, name: str) -> Answer: ...
    def clone_playbook(self, playbook: Playbook) -> Answer: ...
    def report_outcome(self, playbook: Playbook, **fields: Any) -> Answer: ...
    def trigger_evolution(self, playbook: Playbook) -> Answer: ...
    def list_evolutions(self, playbook: Playbook) -> Answer: ...
    def get_evolution_status(self, job_id: object) -> Answer: ...
    def list_versions(self, playbook: Playbook) -> Answer: ...
    def rollback_playbook(self, playbook: Playbook, number: int) -> Answer: ...


class PageInterface:
    """A person in a browser."""

    def __init__(self, user: User) -> None:
        self.browser = Browser()
        log_in_client(self.browser, user)

    def _answer(self, response: Any) -> Answer:
        kind = "ok" if response.status_code < 400 else KINDS[response.status_code]
        return Answer(kind, response.content.decode())

    def _get(self, path: str) -> Answer:
        return self._answer(self.browser.get(path))

    def _post(self, path: str, **data: Any) -> Answer:
        return self._answer(self.browser.post(path, data))

    def list_playbooks(self) -> Answer:
        return self._get("/playbooks")

    def get_playbook(self, playbook: Playbook) -> Answer:
        return self._get(f"/playbooks/{playbook.pk}")

    def create_playbook(self, name: str) -> Answer:
        return self._post("/playbooks/new", name=name)

    def clone_playbook(self, playbook: Playbook) -> Answer:
        return self._post(f"/playbooks/{playbook.pk}/clone")

    def report_outcome(self, playbook: Playbook, **fields: Any) -> Answer:
        cited = ", ".join(fields.pop("bullet_ids", []))
        return self._post(f"/playbooks/{playbook.pk}/outcomes/new", bullet_ids=cited, **fields)

    def trigger_evolution(self, playbook: Playbook) -> Answer:
        return self._post(f"/playbooks/{playbook.pk}/evolutions")

    def list_evolutions(self, playbook: Playbook) -> Answer:
        return self._get(f"/playbooks/{playbook.pk}/evolutions")

    def get_evolution_status(self, job_id: object) -> Answer:
        return self._get(f"/evolutions/{job_id}")

    def list_versions(self, playbook: Playbook) -> Answer:
        return self._get(f"/playbooks/{playbook.pk}/versions")

    def rollback_playbook(self, playbook: Playbook, number: int) -> Answer:
        return self._post(f"/playbooks/{playbook.pk}/versions/{number}/rollback")


class RestInterface:
    """A program with an API key, over real HTTP."""

    def __init__(self, url: str, key: str) -> None:
        self.url, self.headers = f"{url}/api/v1", {"Authorization": f"Bearer {key}"}

    def _send(self, method: str, path: str, body: Any = None) -> Answer:
        response = httpx2.request(
            method,
            f"{self.url}{path}",
            json=body,
            headers=self.headers,
            trust_env=False,
            timeout=20,
        )
        kind = "ok" if response.status_code < 400 else KINDS[response.status_code]
        return Answer(kind, response.text)

    def list_playbooks(self) -> Answer:
        return self._send("GET", "/playbooks")

    def get_playbook(self, playbook: Playbook) -> Answer:
        return self._send("GET", f"/playbooks/{playbook.pk}")

    def create_playbook(self, name: str) -> Answer:
        return self._send("POST", "/playbooks", {"name": name})

    def clone_playbook(self, playbook: Playbook) -> Answer:
        return self._send("POST", f"/playbooks/{playbook.pk}/clone", {})

    def report_outcome(self, playbook: Playbook, **fields: Any) -> Answer:
        return self._send("POST", f"/playbooks/{playbook.pk}/outcomes", fields)

    def trigger_evolution(self, playbook: Playbook) -> Answer:
        return self._send("POST", f"/playbooks/{playbook.pk}/evolutions")

    def list_evolutions(self, playbook: Playbook) -> Answer:
        return self._send("GET", f"/playbooks/{playbook.pk}/evolutions")

    def get_evolution_status(self, job_id: object) -> Answer:
        return self._send("GET", f"/evolutions/{job_id}")

    def list_versions(self, playbook: Playbook) -> Answer:
        return self._send("GET", f"/playbooks/{playbook.pk}/versions")

    def rollback_playbook(self, playbook: Playbook, number: int) -> Answer:
        return self._send("POST", f"/playbooks/{playbook.pk}/versions/{number}/rollback")


class McpInterface:
    """An agent with an API key, over real HTTP."""

    def __init__(self, url: str, key: str) -> None:
        self.agent: Agent = live_mcp(url, key)

    def _call(self, tool: str, **arguments: Any) -> Answer:
        result = self.agent.call(tool, **arguments)
        text = " ".join(getattr(block, "text", "") for block in result.content)
        if not result.is_error:
            return Answer("ok", text + str(result.structured_content))
        code = (result.meta or {})["ace/error"]["code"]
        return Answer("conflict" if code in CONFLICTS else code, text)

    def list_playbooks(self) -> Answer:
        return self._call("list_playbooks")

    def get_playbook(self, playbook: Playbook) -> Answer:
        return self._call("get_playbook", playbook_id=str(playbook.pk))

    def create_playbook(self, name: str) -> Answer:
        return self._call("create_playbook", name=name)

    def clone_playbook(self, playbook: Playbook) -> Answer:
        return self._call("clone_playbook", playbook_id=str(playbook.pk))

    def report_outcome(self, playbook: Playbook, **fields: Any) -> Answer:
        return self._call("report_outcome", playbook_id=str(playbook.pk), **fields)

    def trigger_evolution(self, playbook: Playbook) -> Answer:
        return self._call("trigger_evolution", playbook_id=str(playbook.pk))

    def list_evolutions(self, playbook: Playbook) -> Answer:
        return self._call("list_evolutions", playbook_id=str(playbook.pk))

    def get_evolution_status(self, job_id: object) -> Answer:
        return self._call("get_evolution_status", job_id=str(job_id))

    def list_versions(self, playbook: Playbook) -> Answer:
        return self._call("list_versions", playbook_id=str(playbook.pk))

    def rollback_playbook(self, playbook: Playbook, number: int) -> Answer:
        return self._call("rollback_playbook", playbook_id=str(playbook.pk), version=number)


def open_interfaces(url: str, user: User) -> dict[str, Interface]:
    """The same user at each of the three doors."""
    _, token = make_key(user)
    return {
        "page": PageInterface(user),
        "rest": RestInterface(url, token),
        "mcp": McpInterface(url, token),
    }
