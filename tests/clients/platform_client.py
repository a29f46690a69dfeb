"""The platform as its user reaches it: REST with a key, pages with a login."""

import re
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.harness.platform_process import EMAIL, PASSWORD

KEY = "ace_of_the_clients_harness_0001"


@dataclass(frozen=True)
class Key:
    """A key of the first user, with its secret."""

    id: str
    name: str
    token: str


class Site:
    """One running platform, seen by its first user."""

    def __init__(self, url: str, key: str = KEY) -> None:
        self.url, self.key = url, key
        headers = {"Authorization": f"Bearer {key}"}
        self.rest = httpx2.Client(
            base_url=f"{url}/api/v1", headers=headers, trust_env=False, timeout=20
        )
        self.pages = httpx2.Client(base_url=url, trust_env=False, timeout=20, follow_redirects=True)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON answer of a route that has to succeed."""
        answer = self.rest.request(method, path, json=body)
        assert answer.is_success, (method, path, answer.status_code, answer.text[:500])
        return answer.json() if answer.content else None

    def make_playbook(self, name: str, advice: list[str]) -> str:
        """A playbook with these bullets; its id."""
        text = "## STRATEGIES & INSIGHTS\n" + "".join(
            f"[str-{number:05d}] helpful=0 harmful=0 :: {line}\n"
            for number, line in enumerate(advice, 1)
        )
        made = self.ask("POST", "/playbooks/import", {"name": name, "content": text})
        return str(made["id"])

    def outcomes(self, playbook: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("GET", f"/playbooks/{playbook}/outcomes")["results"]
        return found

    def log_in(self) -> None:
        """The pages know the first user from here on."""
        form = self.pages.get("/login").text
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
        assert token, "the login page has no form"
        sent = {"csrfmiddlewaretoken": token[1], "email": EMAIL, "password": PASSWORD}
        answer = self.pages.post("/login", data=sent, headers={"Referer": f"{self.url}/login"})
        assert answer.is_success, answer.status_code

    def arrivals(self) -> str:
        """What the connect page says, as text."""
        html = self.pages.get("/connect/check").text
        return " ".join(re.sub(r"<[^>]+>", " ", html).split())

    def make_key(self, name: str) -> Key:
        """One more key; people make keys, keys do not."""
        login = {"email": EMAIL, "password": PASSWORD}
        access = self.ask("POST", "/auth/login", login)["access"]
        self.person = {"Authorization": f"Bearer {access}"}
        sent = {"name": name, "scopes": ["report"]}
        answer = self.rest.post("/auth/api-keys", json=sent, headers=self.person)
        assert answer.is_success, answer.text
        made = answer.json()
        return Key(made["id"], name, made["key"])

    def revoke_key(self, key: Key) -> None:
        answer = self.rest.delete(f"/auth/api-keys/{key.id}", headers=self.person)
        assert answer.is_success, answer.text
