"""The data types of client configurations. Pure."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

URL_PLACEHOLDER = "@ADDRESS@"
VERIFY_QUESTION = "Which playbooks can you list?"
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


class BothSnippets(TypedDict):
    """The fields of Client that hold its snippets."""

    key: Snippet
    login: Snippet


@dataclass(frozen=True)
class Client:
    """An MCP client. `tested` is the verified version with the result, or empty."""

    slug: str
    name: str
    key: Snippet | None = None
    login: Snippet | None = None
    steps: tuple[str, ...] = ()
    verify: str = ""
    shows: str = ""
    tested: str = ""
    notes: tuple[str, ...] = ()
    needs_public_url: bool = False

    @property
    def runs_verify(self) -> bool:
        """True when `verify` is a command, not a question for a chat."""
        return not self.verify.startswith("In ")

    @property
    def snippets(self) -> Mapping[str, Snippet]:
        """By authentication method: `key` or `login`."""
        both = {"key": self.key, "login": self.login}
        return {method: snippet for method, snippet in both.items() if snippet}


def json_snippet(place: str, content: Mapping[str, Any]) -> Snippet:
    """A JSON file, or the part to merge into one."""
    return Snippet(place, "json", json.dumps(content, indent=2) + "\n")


def json_snippets(place: str, server: Mapping[str, Any], authorization: str) -> BothSnippets:
    """Both snippets of a client with `mcpServers` in a JSON file: with the header, and without."""
    with_key = {**server, "headers": {"Authorization": authorization}}
    return {
        "key": json_snippet(place, {"mcpServers": {"ace": with_key}}),
        "login": json_snippet(place, {"mcpServers": {"ace": server}}),
    }


def url_snippet(place: str) -> Snippet:
    """A form field that takes the URL only."""
    return Snippet(place, "text", URL_PLACEHOLDER + "\n")


def mcp_remote_config(**more: str) -> dict[str, Any]:
    """mcp-remote for a client with local servers only; it substitutes the variable itself."""
    header = "Authorization:Bearer ${ACE_API_KEY}"
    return more | {
        "command": "npx",
        "args": ["-y", "mcp-remote", URL_PLACEHOLDER, "--header", header],
    }


DESKTOP_ENVIRONMENT_NOTE = (
    "Apps started from the desktop don’t read your shell profile. On macOS, run"
    ' `launchctl setenv ACE_API_KEY "$ACE_API_KEY"` and restart the app; on Linux, add the variable'
    " to `~/.config/environment.d/ace.conf` and log in again; on Windows, use `setx`."
)
