"""A fake model on the loopback, and an engine that asks it."""

from collections.abc import Iterator

import pytest

from tests.evolution.engine.fakes import EngineHarness
from tests.harness.fake_llm.model import FakeLLM


@pytest.fixture
def fake() -> Iterator[FakeLLM]:
    with FakeLLM() as llm:
        yield llm


@pytest.fixture
def stage(fake: FakeLLM) -> EngineHarness:
    return EngineHarness(fake)
