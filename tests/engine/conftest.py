"""A fake model on the loopback, and an engine that asks it."""

from collections.abc import Iterator

import pytest

from tests.engine.cast import Stage
from tests.fake_llm import FakeLLM


@pytest.fixture
def fake() -> Iterator[FakeLLM]:
    with FakeLLM() as llm:
        yield llm


@pytest.fixture
def stage(fake: FakeLLM) -> Stage:
    return Stage(fake)
