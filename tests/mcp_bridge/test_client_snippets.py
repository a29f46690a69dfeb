"""Each snippet parses in the format of its client, and none contains a key."""

import json
import re
import shlex
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from core.security.redaction import API_KEY_PATTERN
from mcp_bridge.clients import BY_SLUG, CLIENTS, Client, Snippet
from tests.clients.mock_model import texts_in
from tests.clients.programs import versions

ADDRESSES = (
    "http://127.0.0.1:8000/mcp",
    "https://ace.example.org/mcp",
    "http://[::1]:8000/mcp",
)
ALL = [
    pytest.param(snippet, method, id=f"{client.slug}-{method}")
    for client in CLIENTS
    for method, snippet in client.snippets.items()
]
NAMES_THE_KEY = re.compile(
    r"\$\{?ACE_API_KEY\}?|\$\{env:ACE_API_KEY\}|\{env:ACE_API_KEY\}|\$\{input:ace-api-key\}"
    r'|bearer_token_env_var = "ACE_API_KEY"'
)


def parse(snippet: Snippet, url: str) -> Any:
    """The snippet as data: shell commands as lists of words."""
    text = snippet.fill(url)
    if snippet.format == "sh":
        return [shlex.split(line) for line in text.replace("\\\n", " ").splitlines()]
    readers: dict[str, Callable[[str], Any]] = {
        "json": json.loads,
        "toml": tomllib.loads,
        "yaml": yaml.safe_load,
        "text": str.strip,
    }
    return readers[snippet.format](text)


def test_every_supported_client_is_listed() -> None:
    assert [client.name for client in CLIENTS] == [
        *("Claude Code", "Claude Desktop", "claude.ai", "ChatGPT", "Codex", "Cursor", "VS Code"),
        *("Gemini CLI", "Windsurf", "Zed", "Goose", "opencode"),
    ]
    assert len({client.slug for client in CLIENTS}) == len(CLIENTS)


@pytest.mark.parametrize("url", ADDRESSES)
@pytest.mark.parametrize(("snippet", "method"), ALL)
def test_a_snippet_is_valid_and_contains_the_url(snippet: Snippet, method: str, url: str) -> None:
    assert url in list(texts_in(parse(snippet, url)))


@pytest.mark.parametrize(("snippet", "method"), ALL)
def test_no_snippet_contains_a_key(snippet: Snippet, method: str) -> None:
    text = snippet.fill(ADDRESSES[0])
    assert not API_KEY_PATTERN.search(text)
    assert not re.search(r"(?i)bearer +[a-z0-9_-]{3}|ace_live|sk-|token\"?: *\"[a-z0-9]", text)
    assert bool(NAMES_THE_KEY.search(text)) is (method == "key")


def test_a_header_is_the_one_that_the_server_reads() -> None:
    for snippet in (one.snippets["key"] for one in CLIENTS if "key" in one.snippets):
        texts = list(texts_in(parse(snippet, ADDRESSES[0])))
        values = [text for text in texts if "Bearer" in text]
        named = any("ACE_API_KEY" in text for text in texts)
        assert named or values == ["Bearer ${input:ace-api-key}"], snippet.place
        assert all(re.fullmatch(r"(Authorization: ?)?Bearer \S+", value) for value in values)


def test_the_shell_keeps_the_variable_unexpanded() -> None:
    (command,) = parse(CLIENTS[0].snippets["key"], ADDRESSES[0])
    assert command[-1] == "Authorization: Bearer ${ACE_API_KEY}"


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.slug)
def test_each_client_has_steps_and_a_verification(client: Client) -> None:
    assert client.steps
    assert client.verify
    assert client.shows
    assert client.snippets
    assert not client.needs_public_url or "key" not in client.snippets


def test_tested_versions_are_those_that_the_harness_installs() -> None:
    for slug, version in versions().items():
        by_name = BY_SLUG.get(slug)
        tested = by_name.tested if by_name else BY_SLUG["zed"].tested
        assert version in tested, slug
