"""What a way of connecting consists of. Pure."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

URL_PLACEHOLDER = "@ADDRESS@"
VERIFY_QUESTION = "Which playbooks can you list?"


@dataclass(frozen=True)
class Snippet:
    """Something to copy: `place` is the file, or the kind of window, that it goes into."""

    place: str
    format: str  # sh, json, toml, yaml or text
    text: str

    def fill(self, url: str) -> str:
        """The text with this server's address, quoted where a shell reads it."""
        return self.text.replace(URL_PLACEHOLDER, shlex.quote(url) if self.format == "sh" else url)


@dataclass(frozen=True)
class Client:
    """One program. `tested` says with which version, and what was seen, or is empty: not run."""

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
    def auth(self) -> str:
        """What it can prove who it is with, as shown in the table of the docs."""
        ways = {"API key": self.key, "login in the browser": self.login}
        return ", ".join(way for way, snippet in ways.items() if snippet)

    @property
    def runs_verify(self) -> bool:
        """`verify` is a command, not something to ask for in a chat."""
        return not self.verify.startswith("In ")

    @property
    def snippets(self) -> Mapping[str, Snippet]:
        """By the way of proving who asks: `key` or `login`."""
        both = {"key": self.key, "login": self.login}
        return {way: snippet for way, snippet in both.items() if snippet}


def json_snippet(place: str, content: Mapping[str, Any]) -> Snippet:
    """A file, or the part of one that is to be merged into it."""
    return Snippet(place, "json", json.dumps(content, indent=2) + "\n")


def url_snippet(place: str) -> Snippet:
    """A field of a form that takes the address and nothing else."""
    return Snippet(place, "text", URL_PLACEHOLDER + "\n")


def mcp_remote_config(**more: str) -> dict[str, Any]:
    """mcp-remote, for a program that takes local servers only; it fills in the variable itself."""
    header = "Authorization:Bearer ${ACE_API_KEY}"
    return more | {
        "command": "npx",
        "args": ["-y", "mcp-remote", URL_PLACEHOLDER, "--header", header],
    }


DESKTOP_ENVIRONMENT_NOTE = (
    "A program that is started from the desktop does not read your shell’s profile. On macOS run"
    ' `launchctl setenv ACE_API_KEY "$ACE_API_KEY"` and start it again; on Linux put the variable'
    " into `~/.config/environment.d/ace.conf` and log in again; on Windows use `setx`."
)
