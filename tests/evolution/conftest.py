"""One outcome that cites a bullet and leaves a lesson, and the evolution that it waits for."""

import pytest

from accounts.models import User
from accounts.scopes import Principal
from evolution.models import EvolutionJob
from evolution.services import trigger_evolution
from playbooks.models import Playbook
from tests.factories import make_outcome


@pytest.fixture
def job(playbook: Playbook, alice: User) -> EvolutionJob:
    lesson = "lesson: Run the linter before the tests."
    make_outcome(playbook, alice, bullet_ids=["str-00001"], notes=lesson)
    return trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
