"""The todo agent learns: ten tasks without ACE, the same ten with what others taught; or twenty."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.core.management import call_command
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from accounts.models import User
from config.asgi import build_application
from evolution.models import EvolutionJob
from evolution.worker.tasks import run_evolution
from tests.examples.readme import EXAMPLES, readme_commands
from tests.examples.scripted_llm import RULES, TodoLLM
from tests.factories import make_key, make_user
from tests.harness.live_server import serving
from tests.harness.waiting import wait_until
from todo_agent.ace import Playbook
from todo_agent.compare import compare
from todo_agent.over_rest import RestPlatform
from todo_agent.playing import Player

# One journey for all of them (tests/conftest.py sees to it): it takes seconds.
pytestmark = [pytest.mark.timeout(240)]
RULE_OF = {
    "add": "twin",
    "schedule": "iso",
    "weekend": "weekend",
    "complete": "by_id",
    "sweep": "search",
}


@dataclass(frozen=True)
class Journey:
    """What `compare` wrote and printed, and REST answers about the playbook after it."""

    tasks: int
    result: dict[str, Any]
    printed: str
    bullets: list[dict[str, Any]]
    histories: dict[str, dict[str, Any]]
    outcomes: dict[str, dict[str, Any]]

    def bullet_of(self, rule: str) -> str:
        """The id of the one bullet that carries this rule."""
        (found,) = [b["id"] for b in self.bullets if RULES[rule].search(b["content"])]
        return str(found)

    def played(self, round_name: str, kind: str) -> list[dict[str, Any]]:
        return [row for row in self.result["rounds"][round_name] if row["kind"] == kind]


@pytest.fixture(scope="module", params=[10, pytest.param(20, marks=pytest.mark.nightly)])
def journey(
    request: pytest.FixtureRequest,
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Journey:
    """`python -m todo_agent compare` over MCP, as the README says it; Reflector and Curator too."""
    folder = tmp_path_factory.mktemp("todo")
    with django_db_blocker.unblock(), TodoLLM() as llm, serving(build_application()) as url:
        key = make_key(make_user("alice@example.org"))[1]
        env = {"OPENAI_API_KEY": "test", "OPENAI_BASE_URL": llm.base_url}
        with override_settings(ACE_ENGINE="openai", **env):
            access = {"ACE_URL": url, "ACE_API_KEY": key}
            printed = _compared(folder, request.param, env | access)
            result = json.loads((folder / "compare.json").read_text())
        seen = _looked_up(url, key, request.param, result, printed)
    with django_db_blocker.unblock():
        call_command("flush", verbosity=0, interactive=False)
    return seen


def _compared(folder: Path, tasks: int, env: dict[str, str]) -> str:
    """What the command printed for so many tasks; while it runs, this process is the worker."""
    (command,) = [line for line in readme_commands() if line[0] == "compare"]
    with (
        (folder / "stderr").open("w") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "todo_agent", *command, "--tasks", str(tasks)],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(EXAMPLES), **env},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):

        def worked_to_the_end() -> bool:
            _work()
            return process.poll() is not None

        wait_until(worked_to_the_end, seconds=200)
        assert process.returncode == 0, (folder / "stderr").read_text()
        return process.stdout.read() if process.stdout else ""


def _looked_up(url: str, key: str, tasks: int, result: dict[str, Any], printed: str) -> Journey:
    one = f"{url}/api/v1/playbooks/{result['playbook']}"
    with httpx2.Client(headers={"Authorization": f"Bearer {key}"}, timeout=30) as http:

        def get(path: str) -> Any:
            return http.get(f"{one}{path}").raise_for_status().json()

        bullets = get("/bullets")["results"]
        histories = {b["id"]: get(f"/bullets/{b['id']}/history") for b in bullets}
        outcomes = {row["id"]: row for row in get("/outcomes?page_size=100")["results"]}
    return Journey(tasks, result, printed, bullets, histories, outcomes)


def test_the_same_tasks_go_better_with_what_others_taught(journey: Journey) -> None:
    passed = journey.result["passed"]
    assert (passed["without"], passed["with"]) == (journey.tasks // 2, journey.tasks)
    assert "without    practice        with" in journey.printed
    assert re.search(rf"^all +{journey.tasks // 2}/{journey.tasks} ", journey.printed, re.M)


@pytest.mark.parametrize("kind", RULE_OF)
def test_each_gain_cites_the_bullet_that_carries_its_rule(journey: Journey, kind: str) -> None:
    bullet = journey.bullet_of(RULE_OF[kind])
    before = {row["task"]: row["passed"] for row in journey.played("without", kind)}
    gained = [row for row in journey.played("with", kind) if not before[row["task"]]]
    assert len(gained) == journey.tasks // 10
    assert all(bullet in row["cited"] for row in gained)
    history = journey.histories[bullet]
    # The key that taught the rule also reports its gains: its own votes are kept and do not count.
    assert history["bullet"]["helpful"] == 0
    voted = {vote["outcome_id"] for vote in history["votes"] if vote["tag"] == "neutral"}
    assert {row["outcome_id"] for row in gained} <= voted


@pytest.mark.parametrize("kind", RULE_OF)
def test_each_bullet_leads_back_to_the_failures_that_taught_it(journey: Journey, kind: str) -> None:
    history = journey.histories[journey.bullet_of(RULE_OF[kind])]
    taught_by = history["introduced_by"]["outcome_ids"]
    failed = {r["outcome_id"] for r in journey.played("practice", kind) if not r["passed"]}
    assert taught_by
    assert set(taught_by) <= failed
    for outcome_id in taught_by:
        outcome = journey.outcomes[outcome_id]
        assert (outcome["outcome"], outcome["signal"]) == ("failure", "test")
        assert "The check of the list found:" in outcome["notes"]
        assert outcome["version_assumed"] is False


def test_nothing_but_the_five_rules_was_learned(journey: Journey) -> None:
    assert {b["id"] for b in journey.bullets} == {journey.bullet_of(rule) for rule in RULES}
    # No measured task taught: its reports came after the rules, and only counted votes.
    measured = {row["outcome_id"] for row in journey.result["rounds"]["with"]}
    taught = {o for b in journey.bullets for o in b["outcome_ids"]}
    assert not taught & measured


def test_every_report_is_one_outcome_under_the_version_that_was_read(journey: Journey) -> None:
    rounds = journey.result["rounds"]
    played = {row["outcome_id"]: row for row in [*rounds["practice"], *rounds["with"]]}
    assert journey.outcomes.keys() == played.keys()
    assert len(played) == 2 * journey.tasks
    for key, row in played.items():
        assert journey.outcomes[key]["version"] == row["version"]
        assert journey.outcomes[key]["bullet_ids"] == row["cited"]
    assert not any(row["outcome_id"] for row in rounds["without"])


def test_over_rest_with_the_rules_engine_and_the_agents_own_lessons(
    live_url: str, alice: User, player: Player
) -> None:
    """The short form: no model at the platform; the worker's step runs where the agent waits."""
    platform = RestPlatform(live_url, make_key(alice)[1])
    playbook = Playbook(
        platform, platform.create_playbook("Todo agent"), pause=lambda _seconds: _work()
    )
    reviewing = Player(player.client, player.model, review=True)
    try:
        rounds = compare(reviewing, playbook, count=5, seed=1, tell=partial(print))
    finally:
        platform.close()
    passed = {name: sum(row.passed for row in rows) for name, rows in rounds.items()}
    assert (passed["without"], passed["with"]) == (0, 5)
    assert all(row.lesson.startswith("Lesson: ") for row in rounds["practice"])
    assert all(row.cited for row in rounds["with"])


def _work() -> None:
    """One turn of the worker."""
    for key in EvolutionJob.objects.filter(status="queued").values_list("pk", flat=True):
        run_evolution(str(key))
