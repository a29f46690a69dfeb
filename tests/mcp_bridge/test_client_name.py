"""An outcome stores the name of the client that reported it."""

import pytest

from accounts.models import User
from evolution.models import Outcome
from playbooks.models import Playbook
from tests.factories import make_key
from tests.harness.live_server import live_mcp

REPORT = {"task_description": "Build", "outcome": "success"}


@pytest.mark.parametrize(("mode", "known"), [("auto", "mcp "), ("legacy", "python-httpx")])
def test_the_client_name_is_client_info_or_else_the_user_agent(
    live_url: str, alice: User, playbook: Playbook, mode: str, known: str
) -> None:
    agent = live_mcp(live_url, make_key(alice)[1], mode)
    agent.call("report_outcome", playbook_id=str(playbook.pk), **REPORT)
    assert Outcome.objects.get().client.startswith(known)
