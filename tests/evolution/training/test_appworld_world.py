"""The AppWorld adapter against a stub with appworld 0.1.3's names; AppWorld itself was not run."""

import io
import json
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from benchmarks.quality import appworld_world
from benchmarks.quality.appworld_world import AppWorldTask
from evolution.engine.adaptation.solver import ActingSolver
from evolution.engine.environments import Question, WorldEnvironment, as_feedback, environment_for
from evolution.engine.llm import CredentialError
from evolution.engine.providers.openai import OpenAILLM
from tests.evolution.engine.fakes import PLAYBOOK, EngineHarness, FakeLedger
from tests.harness.fake_llm.model import FakeLLM

QUESTION = Question("t.1", "Send 5 dollars to Ann.", "AppWorld task 82e2fac_1")
DONE = "apis.supervisor.complete_task()"


class AppWorld:
    """A server has one world at a time; two tests, of which one asks for a payment."""

    used: dict[str, "AppWorld"] = {}

    def __init__(self, task_id: str, experiment_name: str, remote_environment_url: str) -> None:
        assert remote_environment_url not in self.used
        self.used[remote_environment_url] = self
        self.task_id, self.url, self.code = task_id, remote_environment_url, list[str]()
        self.task = SimpleNamespace(
            instruction="Send 5 dollars to Ann.",
            supervisor={"first_name": "Joe"},
            app_descriptions={"venmo": "Payments."},
        )

    def execute(self, code: str) -> str:
        self.code.append(code)
        return "Execution successful."

    def task_completed(self) -> bool:
        return self.code[-1] == DONE

    def evaluate(self) -> Any:
        paid = "apis.venmo.pay(5)" in self.code
        failures = [] if paid else [{"requirement": "assert 5 dollars went to Ann", "trace": ""}]
        return SimpleNamespace(success=paid, pass_count=1 + paid, num_tests=2, failures=failures)

    def close(self) -> None:
        del self.used[self.url]


@pytest.fixture(autouse=True)
def appworld(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    stub, tasks = ModuleType("appworld"), ModuleType("appworld.task")
    stub.AppWorld, stub.load_task_ids = AppWorld, lambda split: ["82e2fac_1"]  # type: ignore[attr-defined]
    loaded = SimpleNamespace(instruction=QUESTION.task)
    tasks.Task = SimpleNamespace(load=lambda **_: loaded)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "appworld", stub)
    monkeypatch.setitem(sys.modules, "appworld.task", tasks)
    monkeypatch.setenv("APPWORLD_URLS", "http://127.0.0.1:8001")
    appworld_world.free_servers.cache_clear()
    yield
    assert AppWorld.used == {}
    assert appworld_world.free_servers().qsize() == 1


def test_a_task_is_done_in_steps_and_scored_by_its_own_tests() -> None:
    world = AppWorldTask()
    seen = world.reset(QUESTION)
    assert "Payments." in seen and "Joe" in seen
    assert world.step("```python\napis.venmo.pay(5)```") == ("Execution successful.", False)
    assert world.step(DONE) == ("Execution successful.", True)
    found = as_feedback(world.score())
    assert (found.status, found.score) == ("success", 1.0)
    world.close()
    world.close()


def test_without_labels_nothing_of_the_tests_is_shown() -> None:
    world = AppWorldTask()
    world.reset(QUESTION)
    world.step(DONE)
    found = as_feedback(world.score())
    assert (found.status, found.score) == ("partial", 0.5)
    assert "went to Ann" in (found.ground_truth or "")
    assert "went to Ann" not in found.without_truth().model_dump_json()
    world.close()


def test_a_server_is_given_back_when_the_model_fails_in_the_middle() -> None:
    environment = environment_for("world:benchmarks.quality.appworld_world:AppWorldTask", [])
    assert isinstance(environment, WorldEnvironment)
    with FakeLLM() as server:
        llm = OpenAILLM(api_key="k", base_url=server.base_url, deadline=20, ledger=FakeLedger())
        solver = ActingSolver(llm, "m", EngineHarness(server).engine, make=environment.make)
        server.say("generator", {"reasoning": "", "final_answer": "1 + 1", "bullet_ids": []})
        server.fail("generator", status=401)
        with pytest.raises(CredentialError):
            solver.generate("k", QUESTION, PLAYBOOK, None)
        server.say("generator", {"reasoning": "", "final_answer": DONE, "bullet_ids": []})
        acted = solver.generate("k", QUESTION, PLAYBOOK, None)
        assert acted.feedback is not None and acted.feedback.status == "partial"


def test_a_split_becomes_a_data_set() -> None:
    out = io.StringIO()
    appworld_world.write_rows("train", out)
    assert json.loads(out.getvalue()) == {"context": QUESTION.context, "question": QUESTION.task}
