"""A job that a model works on, asked for by a request with a known id; and what was logged."""

import io
import logging
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from accounts.models import User
from config.observability.logging import formatter
from core.http.request_id import request_id
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob
from playbooks.models import Playbook
from tests.factories import make_outcome
from tests.harness.fake_llm.model import FakeLLM

CANARY = "canary-51c0"
KNOWN = "request-id-of-this-test"


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Every record from debug up, as the JSON lines that go to stderr."""
    out = io.StringIO()
    stream = logging.StreamHandler(out)
    stream.setFormatter(formatter("json", texts=False))
    root = logging.getLogger()
    level = root.level
    root.addHandler(stream)
    root.setLevel(logging.DEBUG)
    yield out
    root.setLevel(level)
    root.removeHandler(stream)


@pytest.fixture
def model(settings: Settings) -> Iterator[FakeLLM]:
    with FakeLLM() as llm:
        settings.ACE_ENGINE = "openai"
        settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "sk-test", llm.base_url
        yield llm


@pytest.fixture
def asked(playbook: Playbook, alice: User) -> EvolutionJob:
    """Its outcome carries a canary in every text."""
    texts = ("task_description", "notes", "reasoning_trace")
    make_outcome(playbook, alice, **{name: f"{name} {CANARY}" for name in texts})
    known = request_id.set(KNOWN)
    try:
        return trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
    finally:
        request_id.reset(known)


@pytest.fixture
def job(playbook: Playbook, alice: User) -> EvolutionJob:
    """For the rules engine."""
    make_outcome(playbook, alice, notes="lesson: Run the linter before the tests.")
    return trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
