"""Every answer of the MCP endpoint keeps browsers in line, as the pages and REST do."""

import httpx2
import pytest
from pytest_django import Settings

from accounts.models import User
from tests.config.test_security_headers import HEADERS
from tests.factories import make_key
from tests.harness.raw_mcp import REVISIONS, ask


def missing(answer: httpx2.Response) -> list[str]:
    lacking = [name for name, value in HEADERS.items() if answer.headers.get(name) != value]
    policy = answer.headers.get("Content-Security-Policy", "")
    strict = "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    return lacking if strict else [*lacking, f"a strict policy, not {policy!r}"]


@pytest.fixture(autouse=True)
def over_https(settings: Settings) -> None:
    settings.SECURE_HSTS_SECONDS = 31_536_000


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_what_is_refused_has_the_headers(live_url: str, method: str) -> None:
    with httpx2.Client(trust_env=False, timeout=20) as client:
        answer = client.request(method, f"{live_url}/mcp")
    assert (answer.status_code >= 400, missing(answer)) == (True, [])


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_is_answered_has_the_headers(live_url: str, alice: User, revision: str) -> None:
    answer = ask(live_url, make_key(alice)[1], revision, "tools/list", {})
    assert (answer.status_code, missing(answer)) == (200, [])


@pytest.mark.parametrize("path", ["/mcp", "/"])
def test_a_body_over_the_limit_is_refused_with_the_headers(live_url: str, path: str) -> None:
    with httpx2.Client(trust_env=False, timeout=20) as client:
        answer = client.post(f"{live_url}{path}", content=b" " * 2_000_000)
    assert (answer.status_code, missing(answer)) == (413, [])
