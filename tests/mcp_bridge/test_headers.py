"""Every response of the MCP endpoint has the security headers of pages and REST."""

import httpx2
import pytest
from pytest_django import Settings

from accounts.models import User
from core.ratelimit import limits
from tests.config.test_security_headers import HEADERS
from tests.factories import make_key
from tests.harness.raw_mcp import REVISIONS, send_request
from tests.harness.rest_client import Rest


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
    # Django answers, which sends this one over HTTPS only: tests/config/test_security_headers.py.
    lacking = [name for name in missing(response) if name != "Strict-Transport-Security"]
    assert (response.status_code, lacking) == (413, [])


def test_requests_count_against_the_limit_of_rest_and_pages(
    live_url: str, alice: User, charlie: User, staff: User, settings: Settings
) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"requests": "2/h"}
    limits._counts.clear()
    (key, other, of_staff) = (make_key(user)[1] for user in (alice, charlie, staff))
    answers = [send_request(live_url, key, REVISIONS[0], "tools/list", {}) for _ in range(3)]
    assert [a.headers["RateLimit-Remaining"] for a in answers] == ["1", "0", "0"]
    assert [a.status_code for a in answers] == [200, 200, 429]
    assert answers[2].headers["Retry-After"] == answers[2].headers["RateLimit-Reset"]
    assert answers[2].json()["error"]["code"] == "rate_limited"
    assert Rest.of(alice).get("/playbooks").status_code == 429
    for else_key in (other, of_staff):
        assert send_request(live_url, else_key, REVISIONS[0], "tools/list", {}).status_code == 200


def test_a_request_is_logged_with_route_status_and_id(
    live_url: str, alice: User, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "config.web.middleware")
    send_request(live_url, make_key(alice)[1], REVISIONS[0], "tools/list", {})
    (logged,) = [r for r in caplog.records if r.name == "config.web.middleware"]
    assert (logged.getMessage(), logged.__dict__["status"]) == ("POST mcp", 200)
    assert logged.__dict__["took_ms"] >= 0
    assert logged.__dict__["user_id"] == str(alice.pk)
