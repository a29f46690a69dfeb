"""Adaptation from a notebook: a JSONL file, a base URL, and no Django (docs/ADAPTATION.md)."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.quality.memory_playbook import (
    FileCheckpoints,
    InMemoryPlaybook,
    TokenLedger,
    connect,
)
from evolution.engine.adaptation.adapters import AdapterOptions, OfflineAdapter, OfflineResult
from evolution.engine.adaptation.datasets import read_samples
from evolution.engine.adaptation.protocols import CheckpointMismatch, Learned
from evolution.engine.adaptation.solver import LLMSolver
from evolution.engine.environments import NumberMatch
from evolution.engine.llm import CredentialError
from evolution.engine.providers.llm_engine import LLMEngine
from tests.evolution.engine.fakes import EngineHarness, outcome
from tests.harness.fake_llm.learning import LearningLLM, write_world
from tests.harness.fake_llm.model import FakeLLM


@pytest.fixture
def server() -> Iterator[LearningLLM]:
    with LearningLLM() as running:
        yield running


class Notebook:
    """What a person types, in one piece."""

    def __init__(self, folder: Path, server: LearningLLM) -> None:
        self.tokens = TokenLedger()
        llm = connect(server.base_url, "a key", self.tokens)
        engine = LLMEngine(llm, reflector_model="m", curator_model="m")
        checkpoints = FileCheckpoints(folder / "run.jsonl")
        self.llm, self.engine = llm, engine
        self.playbook = InMemoryPlaybook(engine, checkpoints)
        self.adapter = OfflineAdapter(
            solver=LLMSolver(llm, "m", engine),
            learner=self.playbook,
            environment=NumberMatch(),
            checkpoints=checkpoints,
            train=read_samples(write_world(folder / "t.jsonl", seed=1, each=1), name="train"),
            validation=read_samples(write_world(folder / "v.jsonl", seed=2, each=1), name="val"),
            options=AdapterOptions(concurrency=2),
        )

    def run(self) -> OfflineResult:
        return self.adapter.run()


def test_a_playbook_learns_without_django(tmp_path: Path, server: LearningLLM) -> None:
    notebook = Notebook(tmp_path, server)
    adapted = notebook.run()
    assert (adapted.before.accuracy, adapted.after.accuracy) == (0.2, 1.0)
    assert "multiply castrell by 13" in notebook.playbook.text
    assert notebook.tokens.tokens == server.served_tokens
    assert json.loads(json.dumps(adapted.as_dict()))["operations"]["add"] == 8


def test_a_stopped_run_goes_on_from_its_file_and_ends_the_same(
    tmp_path: Path, server: LearningLLM
) -> None:
    (tmp_path / "whole").mkdir()
    whole = Notebook(tmp_path / "whole", server)
    whole.run()
    server.fail("curator", status=401)
    with pytest.raises(CredentialError):
        Notebook(tmp_path, server).run()
    with (tmp_path / "run.jsonl").open("a") as file:
        file.write('\n["torn by a ki')
    calls = server.count("generator")
    again = Notebook(tmp_path, server)
    again.run()
    assert again.playbook.text == whole.playbook.text
    assert server.count("generator") - calls == whole.tokens.calls - 10 - 2 - 15


@pytest.mark.parametrize("role", ["reflector", "curator"])
def test_a_resumed_run_repeats_failures_and_asks_nobody(tmp_path: Path, role: str) -> None:
    def learnt(fake: FakeLLM) -> tuple[Learned, str]:
        llm = EngineHarness(fake).engine
        playbook = InMemoryPlaybook(llm, FileCheckpoints(tmp_path / "run.jsonl"), concurrency=1)
        return playbook.learn("b1", [outcome("o1"), outcome("o2")]), playbook.text

    with FakeLLM() as fake:
        fake.fail(role, status=400)
        first, asked = learnt(fake), fake.count()
        stored = (tmp_path / "run.jsonl").read_text()
        assert first[0].error == "bad_request" or "refused the request" in stored
        assert learnt(fake) == first
        assert fake.count() == asked


def test_a_file_of_checkpoints_serves_one_data_set_and_one_model(
    tmp_path: Path, server: LearningLLM
) -> None:
    Notebook(tmp_path, server).run()
    asked = server.count()
    for name, changed in {"samples": "train", "solver": "model", "options": "seed"}.items():
        other = Notebook(tmp_path, server)
        if changed == "train":
            other.adapter.train = other.adapter.train[1:]
        elif changed == "seed":
            other.adapter.options = AdapterOptions(seed=7)
        else:
            other.adapter.solver = LLMSolver(other.llm, "another", other.engine)
        with pytest.raises(CheckpointMismatch, match=f"another {name}"):
            other.run()
    assert server.count() == asked


def test_nothing_of_django_is_imported() -> None:
    code = "import sys, benchmarks.quality.memory_playbook as m; sys.exit('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_checkpoints_are_lines_that_survive_a_torn_one(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    FileCheckpoints(path).save("a", {"x": "é\n"})
    path.write_text(path.read_text() + '\n["b", {"y"')
    FileCheckpoints(path).save("c", 3)
    assert FileCheckpoints(path).load(["a", "b", "c"]) == {"a": {"x": "é\n"}, "c": 3}
