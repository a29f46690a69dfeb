"""The example that answers cases in CI ends with what the platform decided."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_django import Settings

from accounts.models import User
from core.security.scopes import Scope
from playbooks.models import Playbook
from tests.factories import make_key, make_playbook
from tests.harness.cases import RIGHT, WRONG, give_cases
from tests.harness.trials import LESSON, evolve, give_traffic

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "ace_eval.py"
AGENT = """
import sys
print({with_lesson!r} if {lesson!r} in sys.stdin.read() else {without!r})
"""
EQUAL = AGENT.format(lesson=LESSON, with_lesson=RIGHT, without=RIGHT)
WORSE = AGENT.format(lesson=LESSON, with_lesson=WRONG, without=RIGHT)


def check(url: str, token: str, playbook: Playbook, agent: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-I", SCRIPT, str(playbook.pk), sys.executable, "-c", agent],
        env=os.environ | {"ACE_URL": url, "ACE_API_KEY": token},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.django_db(transaction=True)
def test_the_exit_code_says_what_became_of_the_version(
    live_url: str, alice: User, settings: Settings
) -> None:
    settings.EVOLUTION_OUTCOME_THRESHOLD = 10_000
    token = make_key(alice, scopes=[Scope.READ, Scope.REPORT])[1]
    found = dict[str, tuple[int, str]]()
    for agent in (EQUAL, WORSE):
        playbook = make_playbook(alice, name=str(len(found)))
        give_traffic(playbook)
        give_cases(playbook, alice, 2)
        found[agent] = check(live_url, token, evolve(playbook, alice), agent)
        again = check(live_url, token, playbook, agent)
        assert again[0] == 0
    assert found[EQUAL] == (
        0,
        "4 cases answered. Checked: 0 of 2 cases that passed now fail, 0 newly pass.\n",
    )
    assert found[WORSE][0] == 1
    assert "8 cases answered. Rejected before anyone read it: 2 of 2 cases" in found[WORSE][1]
    assert check("http://127.0.0.1:9", token, playbook, EQUAL)[0] == 2
