"""Four answers at a time for a person, in whichever processes; and as many as a server holds."""

import pytest
from django.conf import LazySettings

from accounts.models import LlmKey, User
from core.clock import database_now
from core.errors import RateLimited
from core.security.scopes import Principal
from evolution.models import AgentSession, ChatSlot
from evolution.playground import chat_concurrency, chat_lifecycle
from evolution.playground.chat_concurrency import PROCESS_SLOTS, SLOTS_PER_USER, ProcessSlots
from playbooks.models import Playbook
from tests.evolution.playground.test_chat_turn import begin, open_chat
from tests.factories import make_user
from tests.harness.concurrency import run_concurrently
from tests.harness.fake_llm.model import FakeLLM
from tests.harness.waiting import wait_until


def test_one_person_has_so_many_answers_at_a_time_in_all_processes(
    chat: AgentSession, llm: FakeLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = llm.hold("chat")
    for _ in range(SLOTS_PER_USER):
        begin(chat).start(lambda _text: None, lambda _answered: None)
    gate.wait_for(SLOTS_PER_USER)
    monkeypatch.setattr(
        chat_concurrency, "PROCESS_SLOTS", ProcessSlots()
    )  # as another process has it
    with pytest.raises(RateLimited, match="of your chats are being answered"):
        begin(chat)
    gate.open()
    wait_until(lambda: not ChatSlot.objects.exists())


def test_of_eight_concurrent_questions_four_get_a_slot(alice: User) -> None:
    def sit(_number: int) -> bool:
        try:
            return bool(chat_concurrency.acquire_slots(alice, 1))
        except RateLimited:
            return False

    assert (
        sum(run_concurrently(8, sit))
        == ChatSlot.objects.count()
        == len(PROCESS_SLOTS.taken)
        == SLOTS_PER_USER
    )


def test_one_process_hears_so_many_answers_at_a_time(
    chat: AgentSession, settings: LazySettings
) -> None:
    settings.PLAYGROUND_STREAMS = 0
    with pytest.raises(RateLimited, match="busy with other chats"):
        begin(chat)


def test_chats_over_endpoints_of_their_own_leave_half_of_a_process_to_the_others(
    alice: User, settings: LazySettings
) -> None:
    settings.PLAYGROUND_STREAMS = 4
    hostile = make_user("hostile@example.org")
    LlmKey.objects.create(user=hostile, encrypted_key="x", base_url="https://llm.example.org/v1")
    chat_concurrency.acquire_slots(hostile, 2)
    with pytest.raises(RateLimited, match="busy with other chats"):
        chat_concurrency.acquire_slots(hostile, 1)
    assert len(chat_concurrency.acquire_slots(alice, 2)) == 2
    PROCESS_SLOTS.taken.clear()
    ChatSlot.objects.all().delete()
    assert chat_concurrency.acquire_slots(hostile, 2)


def test_a_question_without_a_slot_does_not_count_against_the_rate(
    chat: AgentSession, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"ask_playground": "1/h"}
    with monkeypatch.context() as full:
        full.setattr(chat_concurrency, "SLOTS_PER_USER", 0)
        with pytest.raises(RateLimited, match="of your chats"):
            begin(chat)
    streams, settings.PLAYGROUND_STREAMS = settings.PLAYGROUND_STREAMS, 0
    with pytest.raises(RateLimited, match="busy with other chats"):
        begin(chat)
    settings.PLAYGROUND_STREAMS = streams
    begin(chat)


def test_a_refused_question_releases_its_slot(chat: AgentSession, settings: LazySettings) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"ask_playground": "0/h"}
    with pytest.raises(RateLimited, match="0/h"):
        begin(chat)
    assert (ChatSlot.objects.count(), PROCESS_SLOTS.taken) == (0, {})


def test_the_slots_of_a_dead_process_are_free_after_their_lease(chat: AgentSession) -> None:
    for _ in range(SLOTS_PER_USER):
        begin(chat).slot.renew()
    ChatSlot.objects.update(expires_at=database_now())
    PROCESS_SLOTS.taken.clear()
    begin(chat)
    assert ChatSlot.objects.count() == 1


def test_both_sides_of_a_chat_get_a_slot_or_none(
    alice: User, playbook: Playbook, llm: FakeLLM
) -> None:
    sides = chat_lifecycle.chat_sessions(alice, open_chat(alice, playbook, bare=True).pk)
    for _ in range(SLOTS_PER_USER - 1):
        begin(sides[0])
    with pytest.raises(RateLimited):
        chat_lifecycle.begin_turns(sessions=sides, by=Principal.of(alice), question="?")
    assert ChatSlot.objects.count() == len(PROCESS_SLOTS.taken) == SLOTS_PER_USER - 1


def test_a_question_whose_slot_was_taken_is_not_asked(
    chat: AgentSession, alice: User, llm: FakeLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        chat_concurrency, "RETRY_AFTER_SECONDS", 0
    )  # the pauses between its three tries
    late = begin(chat)
    ChatSlot.objects.update(expires_at=database_now())
    chat_concurrency.acquire_slots(alice, SLOTS_PER_USER)
    answered = late.run(lambda _text: None)
    assert answered.error == "Your question waited too long here. Ask again later."
    assert (llm.count(), ChatSlot.objects.count()) == (0, SLOTS_PER_USER)
