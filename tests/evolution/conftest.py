"""A lesson with the evolution that waits for it, and a call of a model that costs little."""

import uuid

import pytest

from accounts.models import User
from core.security.scopes import Principal
from evolution.engine.llm import Usage
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob
from evolution.worker.credentials import Credential
from evolution.worker.llm_admission import LLMCall
from playbooks.models import Playbook
from tests.factories import make_outcome


@pytest.fixture
def job(playbook: Playbook, alice: User) -> EvolutionJob:
    lesson = "lesson: Run the linter before the tests."
    make_outcome(playbook, alice, bullet_ids=["str-00001"], notes=lesson)
    return trigger_evolution(playbook=playbook, by=Principal.of(alice)).job


@pytest.fixture
def call(alice: User) -> LLMCall:
    return LLMCall(
        owner_id=alice.pk,
        playbook_id=uuid.UUID(int=3),
        job_id=uuid.UUID(int=7),
        api_key_id=None,
        credential=Credential("sk-1", "https://models.example/v1"),
        step="curate",
        operation="curate",
        model="gpt-4o-mini",
        most=Usage(1000, 5000),
    )
