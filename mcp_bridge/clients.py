"""How each MCP client connects, from clients.toml, for the page Connect. Pure."""

import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

URL_PLACEHOLDER = "@ADDRESS@"
METHOD_TITLES = {"key": "With an API key", "login": "With browser login"}


@dataclass(frozen=True)
class Snippet:
    """A text to copy; `place` is the file, terminal or form that it goes into."""

    place: str
    format: str  # sh, json, toml, yaml or text
    text: str

    def fill(self, url: str) -> str:
        """The text with this server's URL, quoted for a shell where one reads it."""
        return self.text.replace(URL_PLACEHOLDER, shlex.quote(url) if self.format == "sh" else url)

    @property
    def instruction(self) -> str:
        """What to do with the text, such as `Add to ~/.codex/config.toml`."""
        verb = {"sh": "Run in", "text": "Paste into"}.get(self.format, "Add to")
        return f"{verb} {self.place}"


@dataclass(frozen=True)
class Client:
    """An MCP client; `snippets` by authentication method, `key` or `login`."""

    slug: str
    name: str
    snippets: dict[str, Snippet]
    steps: list[str]
    verify: str
    shows: str
    tested: str = ""
    notes: tuple[str, ...] = ()
    is_desktop_app: bool = False
    needs_public_url: bool = False

    @property
    def runs_verify(self) -> bool:
        """True when `verify` is a command, not a question for a chat."""
        return not self.verify.startswith("In ")


def _client(row: dict[str, Any]) -> Client:
    methods = {method: Snippet(**row.pop(method)) for method in METHOD_TITLES if method in row}
    return Client(**row, snippets=methods)


_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
DESKTOP_NOTE: str = _FILE["desktop_note"]
CLIENTS = [_client(row) for row in _FILE["client"]]
BY_SLUG = {client.slug: client for client in CLIENTS}


def connect_command(mcp_url: str) -> str:
    """The shell lines that connect every agent program on a machine; see client/README.md."""
    return f"pip install ./client\nace connect --url {mcp_url.removesuffix('/mcp')}"
