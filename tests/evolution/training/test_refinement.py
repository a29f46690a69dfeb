"""A playbook in this process is refined too, and a resumed run pays for no verdict twice."""

from pathlib import Path

import pytest

from benchmarks.quality import memory_playbook
from benchmarks.quality.memory_playbook import FileCheckpoints, InMemoryPlaybook
from tests.evolution.engine.fakes import EngineHarness, outcome
from tests.harness.fake_llm.model import FakeLLM

ALIKE = "Check that the sum of the parts equals the total before you answer."
TEXT = f"""## STRATEGIES & INSIGHTS
[str-00001] helpful=5 harmful=0 :: {ALIKE}
[str-00002] helpful=1 harmful=0 :: Always {ALIKE.lower()}
""" + "".join(
    f"[str-{n:05d}] helpful=0 harmful=0 :: {'abcdefghijklmnopqrstuvwxyz'[n] * 60} {n * 7919}\n"
    for n in range(3, 26)
)


def learnt(fake: FakeLLM, file: Path, batches: int = 1) -> InMemoryPlaybook:
    playbook = InMemoryPlaybook(EngineHarness(fake).engine, FileCheckpoints(file), text=TEXT)
    playbook.start()
    for number in range(batches):
        playbook.learn(f"b{number}", [outcome(f"o{number}")])
    return playbook


def test_bullets_that_say_the_same_are_merged(tmp_path: Path) -> None:
    with FakeLLM() as fake:
        playbook = learnt(fake, tmp_path / "run.jsonl", batches=3)
        assert fake.count("judge") == 1
    assert "[str-00001] helpful=9" in playbook.text
    assert "str-00002" not in playbook.text


def test_a_resumed_run_ends_with_the_same_playbook_and_asks_nobody(tmp_path: Path) -> None:
    with FakeLLM() as fake:
        first = learnt(fake, tmp_path / "run.jsonl", batches=2)
        asked = fake.count()
        again = learnt(fake, tmp_path / "run.jsonl", batches=2)
        assert fake.count() == asked
    assert again.text == first.text


def test_a_verdict_of_a_batch_that_was_not_published_is_used_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeLLM() as fake:
        playbook = InMemoryPlaybook(
            EngineHarness(fake).engine, FileCheckpoints(tmp_path / "r"), text=TEXT
        )
        with monkeypatch.context() as guarded:
            guarded.setattr(memory_playbook, "collapses", lambda *_: True)
            assert playbook.learn("b0", [outcome("o0")]).error == "collapse_guard"
        playbook.learn("b1", [outcome("o1")])
        assert fake.count("judge") == 1
    assert "str-00002" not in playbook.text


def test_a_resumed_run_does_not_ask_a_judge_again_who_failed(tmp_path: Path) -> None:
    with FakeLLM() as fake:
        fake.fail("judge", status=400)
        first = learnt(fake, tmp_path / "run.jsonl")
        again = learnt(fake, tmp_path / "run.jsonl")
        assert fake.count("judge") == 1
    assert "str-00002" in again.text
    assert again.text == first.text
