"""Four answers at a time for a person, and as many as a process holds."""

from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.utils import timezone

from accounts.models import LlmKey, User
from billing.models import UsageRecord
from core.errors import RateLimited
from evolution.models import AgentSession
from evolution.playground import chat_turn
from evolution.playground.chat_turn import answer_slot
from evolution.worker.llm_admission import CHATS_PER_USER
from tests.evolution.playground.test_chat_turn import ask, begin
from tests.factories import make_user
from tests.harness.fake_llm.model import FakeLLM
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.postgres


def test_one_person_has_so_many_answers_at_a_time(chat: AgentSession, llm: FakeLLM) -> None:
    gate = llm.hold("chat")
    for _ in range(CHATS_PER_USER):
        begin(chat).start(lambda _text: None, lambda _answered: None)
    gate.wait_for(CHATS_PER_USER)
    assert "of your chats are being answered" in ask(chat)[0].error
    gate.open()
    wait_until(lambda: not chat_turn._answers)
    assert ask(chat)[0].answer is not None


def test_answers_of_other_processes_count_too(chat: AgentSession, llm: FakeLLM) -> None:
    assert ask(chat)[0].answer is not None
    row = UsageRecord.objects.get()
    for attempt in range(2, CHATS_PER_USER + 2):
        row.pk, row.attempt, row.status = uuid4(), attempt, UsageRecord.Status.STARTED
        row.created_at = timezone.now()
        row.save(force_insert=True)
    answered = ask(chat)[0]
    assert answered.error == "4 of your chats are being answered. Ask again later."
    assert llm.count("chat") == 1
    UsageRecord.objects.filter(pk=row.pk).update(status=UsageRecord.Status.ANSWERED)
    assert ask(chat)[0].answer is not None


def test_one_process_gives_so_many_answers_at_a_time(
    chat: AgentSession, llm: FakeLLM, settings: LazySettings
) -> None:
    settings.PLAYGROUND_STREAMS = 0
    assert "busy with other chats" in ask(chat)[0].error
    assert llm.count("chat") == 0


def test_chats_over_endpoints_of_their_own_leave_half_of_a_process_to_the_others(
    alice: User, settings: LazySettings
) -> None:
    settings.PLAYGROUND_STREAMS = 2
    hostile = make_user("hostile@example.org")
    LlmKey.objects.create(user=hostile, encrypted_key="x", base_url="https://llm.example.org/v1")
    with answer_slot(hostile.pk):
        with pytest.raises(RateLimited, match="busy with other chats"), answer_slot(hostile.pk):
            pass
        with answer_slot(alice.pk):
            assert chat_turn._answers.total() == 2
    with answer_slot(hostile.pk):
        assert chat_turn._answers.total() == 1


def test_a_failed_answer_releases_its_slot(chat: AgentSession, llm: FakeLLM) -> None:
    llm.fail("chat", status=401)
    assert ask(chat)[0].answer is None
    assert not chat_turn._answers
