"""Every response of the MCP endpoint has the security headers of pages and REST."""

import httpx2
import pytest
from pytest_django import Settings

from accounts.models import User
from tests.config.test_security_headers import HEADERS
from tests.factories import make_key
from tests.harness.raw_mcp import REVISIONS, send_request


def missing(response: httpx2.Response) -> list[str]:
    lacking = [name for name, value in HEADERS.items() if response.headers.get(name) != value]
    policy = response.headers.get("Content-Security-Policy", "")
    strict = "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    return lacking if strict else [*lacking, f"a strict policy, not {policy!r}"]


@pytest.fixture(autouse=True)
def over_https(settings: Settings) -> None:
    settings.SECURE_HSTS_SECONDS = 31_536_000


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_refused_requests_have_the_headers(live_url: str, method: str) -> None:
    with httpx2.Client(trust_env=False, timeout=20) as client:
        response = client.request(method, f"{live_url}/mcp")
    assert (response.status_code >= 400, missing(response)) == (True, [])


@pytest.mark.parametrize("revision", REVISIONS)
def test_successful_requests_have_the_headers(live_url: str, alice: User, revision: str) -> None:
    response = send_request(live_url, make_key(alice)[1], revision, "tools/list", {})
    assert (response.status_code, missing(response)) == (200, [])


@pytest.mark.parametrize("path", ["/mcp", "/"])
def test_a_body_over_the_limit_is_refused_with_the_headers(live_url: str, path: str) -> None:
    with httpx2.Client(trust_env=False, timeout=20) as client:
        response = client.post(f"{live_url}{path}", content=b" " * 2_000_000)
    assert (response.status_code, missing(response)) == (413, [])
