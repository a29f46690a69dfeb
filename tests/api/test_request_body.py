"""A request body is one JSON object in UTF-8, within limits."""

import io
import json
from typing import Any

import httpx2
import pytest
from pytest_django import Settings

from accounts.models import User
from core.errors import Invalid, TooLarge
from core.rest.parsers import StrictJSONParser, parse_json_object
from tests.harness.rest_client import Rest

BAD = {
    "cut off": b'{"a": ',
    "single quotes": b"{'a': 1}",
    "NaN": b'{"a": NaN}',
    "Infinity": b'{"a": -Infinity}',
    "float overflow": b'{"a": 1e999}',
    "huge integer": b'{"a": ' + b"9" * 5000 + b"}",
    "integer over 64 bits": b'{"a": 9223372036854775808}',
    "NUL": b'{"a": "b\\u0000c"}',
    "NUL in a key": b'{"a\\u0000": 1}',
    "raw NUL": b'{"a": "b\x00c"}',
    "lone surrogate": b'{"a": ["\\ud800"]}',
    "reversed surrogates": b'{"a": "\\udc00\\ud800"}',
    "latin-1": b'{"a": "\xe9"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "byte order mark": b'\xef\xbb\xbf{"a": 1}',
    "deep lists": b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects": b'{"a": ' * 30 + b"1" + b"}" * 30,
    "list": b"[]",
    "text": b'"a"',
    "null": b"null",
    "number": b"5",
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD.keys())
def test_a_bad_body_is_refused_with_a_message(body: bytes) -> None:
    with pytest.raises(Invalid) as refused:
        parse_json_object(body)
    assert refused.value.code == "bad_json"
    assert refused.value.message.endswith(".")


@pytest.mark.parametrize("value", [{"a": "é 漢 👍"}, {"a": -1.5}, {"a": [{"b": None}]}, {}])
def test_a_good_body_is_accepted_unchanged(value: dict[str, Any]) -> None:
    assert parse_json_object(json.dumps(value).encode()) == value


def test_an_escaped_pair_of_surrogates_is_one_character() -> None:
    assert parse_json_object(b'{"a": "\\ud83d\\udc4d"}') == {"a": "👍"}


def test_a_body_over_the_limit_is_refused_whatever_it_declares(settings: Settings) -> None:
    settings.MAX_BODY_BYTES = 100
    with pytest.raises(TooLarge):
        StrictJSONParser().parse(io.BytesIO(b'{"a": "' + b"b" * 100 + b'"}'))


def test_an_empty_body_is_an_empty_object() -> None:
    assert StrictJSONParser().parse(io.BytesIO(b"")) == {}


def test_ten_megabytes_are_refused_as_too_large(alice: User) -> None:
    answer = Rest.of(alice).post("/playbooks", b'{"name": "' + b"a" * 10_000_000 + b'"}')
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


@pytest.mark.parametrize(("size", "status"), [(10, 201), (2_000_000, 413)])
def test_a_chunked_body_is_read_and_limited(
    live_url: str, alice: User, size: int, status: int
) -> None:
    """Over a real connection: it declares no length, so no header gives the size away."""
    body = json.dumps({"description": "", "name": "a" * size}).encode()
    pieces = (body[start : start + 65_536] for start in range(0, len(body), 65_536))
    headers = {
        "Authorization": f"Bearer {Rest.of(alice).token}",
        "Content-Type": "application/json",
    }
    url = f"{live_url}/api/v1/playbooks"
    answer = httpx2.post(url, content=pieces, headers=headers, trust_env=False, timeout=20)
    assert answer.status_code == status


def test_a_browser_that_sends_too_much_gets_a_page(live_url: str) -> None:
    headers = {"Accept": "text/html", "Content-Type": "application/x-www-form-urlencoded"}
    answer = httpx2.post(
        f"{live_url}/login",
        content=b"a" * 2_000_000,
        headers=headers,
        trust_env=False,
        timeout=20,
    )
    assert answer.status_code == 413
    assert "<h1>Too large</h1>" in answer.text


def test_another_content_type_is_unsupported(alice: User) -> None:
    rest = Rest.of(alice)
    answer = rest.client.post(
        "/api/v1/playbooks", {"name": "a"}, headers={"Authorization": f"Bearer {rest.token}"}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")
