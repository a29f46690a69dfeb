"""A playbook, a world to learn, and the model that lives in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import LazySettings

from accounts.models import User
from playbooks.models import Playbook
from tests.factories import make_playbook
from tests.harness.fake_llm.learning import LearningLLM, write_world


@pytest.fixture
def llm(settings: LazySettings) -> Iterator[LearningLLM]:
    with LearningLLM() as server:
        settings.ACE_ENGINE = "openai"
        settings.OPENAI_API_KEY = "test"
        settings.OPENAI_BASE_URL = server.base_url
        settings.LLM_CONCURRENCY = 4
        yield server


@pytest.fixture
def blank(alice: User) -> Playbook:
    return make_playbook(alice, name="Exchange", text="")


@pytest.fixture
def world(tmp_path: Path) -> dict[str, Path]:
    """Training, validation and test tasks: the same units, other amounts."""
    return {
        "train": write_world(tmp_path / "train.jsonl", seed=1, each=1),
        "val": write_world(tmp_path / "val.jsonl", seed=2, each=1),
        "test": write_world(tmp_path / "test.jsonl", seed=3, each=1),
    }


@pytest.fixture
def lesser_world(world: dict[str, Path]) -> dict[str, Path]:
    """With two tasks to validate and two to test, where no accuracy is looked at."""
    for name in ("val", "test"):
        lines = world[name].read_text().splitlines(keepends=True)
        world[name].write_text("".join(lines[:2]))
    return world


@pytest.fixture
def tiny_world(lesser_world: dict[str, Path]) -> dict[str, Path]:
    """Two tasks of each kind, where it does not matter what is learnt."""
    return lesser_world | {"train": lesser_world["val"]}
