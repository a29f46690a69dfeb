"""Two servers behind a proxy that alternates between them: the short form of harness/multi_host."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from accounts.models import User
from config.asgi import build_application
from playbooks.models import Playbook
from tests.factories import make_key
from tests.harness.live_server import live_mcp, serving
from tests.harness.network import listening, round_robin

pytestmark = pytest.mark.postgres

SERVED: list[int] = []


@pytest.fixture
def proxy(transactional_db: None) -> Iterator[str]:
    """The address of a proxy before two servers; SERVED says which one had each request."""
    SERVED.clear()
    with serving(build_application()) as one, serving(build_application()) as other:
        places = [
            (str(urlsplit(url).hostname), int(urlsplit(url).port or 0)) for url in (one, other)
        ]
        with listening(round_robin(places, SERVED), "127.0.0.1") as port:
            yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_mcp_session_works_though_every_request_goes_to_another_server(
    proxy: str, alice: User, playbook: Playbook, mode: str
) -> None:
    agent = live_mcp(proxy, make_key(alice)[1], mode)
    for _ in range(2):
        assert agent.ask("get_playbook", playbook_id=str(playbook.pk))["content"]
    assert abs(Counter(SERVED)[0] - Counter(SERVED)[1]) <= 1 < len(SERVED)


def test_a_limit_is_one_limit_for_all_servers(
    proxy: str, alice: User, playbook: Playbook, settings: Any
) -> None:
    limits = {"report_outcome": "6/h", "report_outcome_over": "0/h"}
    settings.RATE_LIMITS = settings.RATE_LIMITS | limits
    headers = {"Authorization": f"Bearer {make_key(alice)[1]}"}

    def report(number: int) -> int:
        body = {"task_description": f"Task {number}", "outcome": "success"}
        url = f"{proxy}/api/v1/playbooks/{playbook.pk}/outcomes"
        return httpx2.post(url, json=body, headers=headers, timeout=60).status_code

    with ThreadPoolExecutor(4) as pool:
        assert Counter(pool.map(report, range(12))) == {201: 6, 429: 6}
