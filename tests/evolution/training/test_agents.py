"""Training by acting: a tool world with hidden rules, and an agent that is one's own program."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError

from evolution.engine.adaptation.solver import ActingSolver
from evolution.engine.environments import Question
from evolution.engine.providers.openai import OpenAILLM
from evolution.models import EvolutionJob, Outcome
from playbooks.models import Playbook, Vote
from tests.evolution.engine.fakes import PLAYBOOK, EngineHarness, FakeLedger
from tests.evolution.training.run_commands import run_online, train
from tests.harness.fake_llm.learning import LearningLLM
from tests.harness.fake_llm.shop import Shop, ShopLLM, write_tasks

SHOP = "world:tests.harness.fake_llm.shop:Shop"


@pytest.fixture
def shop_llm(settings: LazySettings) -> Iterator[ShopLLM]:
    with ShopLLM() as server:
        settings.ACE_ENGINE, settings.OPENAI_API_KEY = "openai", "test"
        settings.OPENAI_BASE_URL = server.base_url
        yield server


@pytest.mark.django_db(transaction=True)
def test_hidden_rules_of_tools_are_learnt_from_traces_alone(
    blank: Playbook, shop_llm: ShopLLM, tmp_path: Path
) -> None:
    files = {
        "train": write_tasks(tmp_path / "train.jsonl", seed=1, each=1),
        "val": write_tasks(tmp_path / "val.jsonl", seed=2, each=1),
        "test": write_tasks(tmp_path / "test.jsonl", seed=3, each=2),
    }
    summary = train(blank, files, environment=SHOP, withhold_ground_truth=True)
    assert summary["test"]["before"] < 0.4
    assert summary["test"]["after"] > 0.8
    assert set(Outcome.objects.values_list("signal", flat=True)) == {"test"}
    assert "amount is in cents" in blank.bullets.get(content__contains="refund").content


class Endless(Shop):
    def step(self, action: str) -> tuple[str, bool]:
        self.done.append(action)
        return "200 go on", False


class Broken(Shop):
    def step(self, action: str) -> tuple[str, bool]:
        raise KeyError(action)


@pytest.mark.parametrize(
    ("world", "message", "steps"),
    [(Endless, "", 3), (Broken, "The world failed with KeyError.", 0)],
)
def test_a_world_without_an_end_stops_at_the_limit_and_a_broken_one_at_once(
    world: type[Shop], message: str, steps: int
) -> None:
    with ShopLLM() as server:
        llm = OpenAILLM(api_key="k", base_url=server.base_url, deadline=20, ledger=FakeLedger())
        solver = ActingSolver(llm, "m", EngineHarness(server).engine, make=world, steps=3)
        question = Question("s1", "Please show order 7 (3 dollars).")
        acted = solver.generate("k", question, PLAYBOOK, None)
        assert acted.feedback is not None
        assert (acted.feedback.status, acted.feedback.message) == ("failure", message)
        assert acted.reasoning.count("Step ") == steps
        assert server.count("generator") == (steps or 1)


AGENT = """
import json, sys
asked = json.load(sys.stdin)
amount = asked["task"]["task"].split()[1]
knows = "[misc-00001]" in asked["playbook"]
print(json.dumps({
    "reasoning": "Ran the tests.", "final_answer": amount if knows else "?",
    "bullet_ids": ["misc-00001"] if knows else [],
    "test_report": "ok\\n" * 3000 + "test_rounding FAILED: 2 != 2.00\\n" + "ok\\n" * 3000,
}))
"""


@pytest.mark.django_db(transaction=True)
def test_an_agent_of_ones_own_answers_and_its_test_report_is_read_around_its_errors(
    playbook: Playbook, world: dict[str, Path], llm: LearningLLM
) -> None:
    cited = playbook.bullets.order_by("public_id")[0].public_id
    agent = f"run:{shlex.join([sys.executable, '-c', AGENT.replace('misc-00001', cited)])}"
    summary = run_online(playbook, world["test"], agent=agent, window=10)
    assert summary["samples"] == 10
    assert llm.count("generator") == 0
    notes = Outcome.objects.values_list("notes", flat=True)
    assert all("test_rounding FAILED: 2 != 2.00" in text for text in notes)
    assert max(map(len, notes)) < 5_000
    assert not any(text != text.strip() for text in notes)
    assert Outcome.objects.filter(cited_bullets=[cited]).count() == 10
    assert Vote.objects.filter(bullet__public_id=cited).count() == 10


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("code", ["import sys; sys.exit(3)", "print('no')"])
def test_an_agent_that_breaks_has_no_answer(
    blank: Playbook, world: dict[str, Path], llm: LearningLLM, code: str
) -> None:
    agent = f"run:{shlex.join([sys.executable, '-c', code])}"
    summary = run_online(blank, world["test"], agent=agent)
    assert (summary["accuracy"], summary["failed_samples"]) == (0.0, 10)
    assert EvolutionJob.objects.count() == 0


@pytest.mark.parametrize(
    ("options", "calls"),
    [({"environment": SHOP, "max_steps": 5}, 250), ({"agent": f"run:{sys.executable}"}, 0)],
)
def test_a_dry_run_counts_a_call_for_each_step(
    db: None, blank: Playbook, world: dict[str, Path], options: dict[str, Any], calls: int
) -> None:
    plan = train(blank, world, dry_run=True, **options)
    assert plan["most_calls"]["generate"] == calls


def test_an_agent_or_a_world_that_is_not_there_is_refused(
    db: None, blank: Playbook, world: dict[str, Path], llm: LearningLLM
) -> None:
    with pytest.raises(CommandError, match="no program '/no/such'"):
        train(blank, world, agent="run:/no/such")
    with pytest.raises(CommandError, match="no function at"):
        train(blank, world, environment="world:tests.harness.fake_llm.shop:Nowhere")
