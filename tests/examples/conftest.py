"""The scripted model, and a stub of the platform."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from openai import OpenAI

from tests.examples.scripted_llm import TodoLLM
from tests.harness.live_server import live_url
from todo_agent.ace import Evolution, Reading, Report, Triggered
from todo_agent.playing import Player

__all__ = ["live_url"]


@dataclass
class StubPlatform:
    """A playbook that always reads the same, and the reports that came in."""

    content: str = ""
    reports: list[Report] = field(default_factory=list)

    def create_playbook(self, name: str) -> str:
        return "made"

    def read(self, playbook_id: str, max_tokens: int | None) -> Reading:
        return Reading(playbook_id, 1, "serving", self.content)

    def report(self, playbook_id: str, report: Report) -> str:
        self.reports.append(report)
        return f"outcome-{len(self.reports)}"

    def trigger_evolution(self, playbook_id: str) -> Triggered:
        return Triggered("job", True)

    def evolution(self, job_id: str) -> Evolution:
        return Evolution("completed", 0)


@pytest.fixture
def llm() -> Iterator[TodoLLM]:
    with TodoLLM() as server:
        yield server


@pytest.fixture
def client(llm: TodoLLM) -> Iterator[OpenAI]:
    with OpenAI(api_key="test", base_url=llm.base_url) as client:
        yield client


@pytest.fixture
def player(client: OpenAI) -> Player:
    return Player(client, "scripted")
