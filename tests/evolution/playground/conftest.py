"""A model to chat with, for everybody: the operator's key leads to a fake one."""

from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from accounts.models import User
from core.security.scopes import Principal
from evolution.models import AgentSession
from evolution.playground.chat_lifecycle import open_chat
from playbooks.models import Playbook
from tests.factories import make_playbook
from tests.harness.fake_llm.model import FakeLLM
from tests.harness.live_server import live_url as live_url


@pytest.fixture
def alice(transactional_db: None) -> User:
    """Committed rows: answers are heard on threads of their own."""
    return User.objects.create_user("alice@example.org", "correct horse battery")


@pytest.fixture
def playbook(alice: User) -> Playbook:
    return make_playbook(alice)


@pytest.fixture
def llm(settings: LazySettings) -> Iterator[FakeLLM]:
    with FakeLLM() as fake:
        settings.ACE_ENGINE, settings.OPENAI_API_KEY = "openai", "sk-operator"
        settings.OPENAI_BASE_URL = fake.base_url
        yield fake


@pytest.fixture
def chat(llm: FakeLLM, alice: User, playbook: Playbook, settings: LazySettings) -> AgentSession:
    """A chat of one side under the current version."""
    by = Principal.of(alice)
    return open_chat(by=by, playbook=playbook, model=settings.ACE_GENERATOR_MODEL)
