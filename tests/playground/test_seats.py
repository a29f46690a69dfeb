"""Four answers at a time for a person, in whichever processes; and as many as a server holds."""

import pytest
from django.conf import LazySettings

from accounts.errors import RateLimited
from accounts.models import User
from accounts.scopes import Principal
from evolution import playground
from evolution.clock import database_now
from evolution.models import AgentSession, ChatSeat
from evolution.worker import seats
from evolution.worker.seats import HALL, SEATS_EACH, Hall
from playbooks.models import Playbook
from tests.concurrency.threads import at_once
from tests.config.waiting import wait_until
from tests.fake_llm import FakeLLM
from tests.playground.test_asking import begin, open_chat


def test_one_person_has_so_many_answers_at_a_time_in_all_processes(
    chat: AgentSession, llm: FakeLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = llm.hold("chat")
    for _ in range(SEATS_EACH):
        begin(chat).start(lambda _text: None, lambda _answered: None)
    gate.wait_for(SEATS_EACH)
    monkeypatch.setattr(seats, "HALL", Hall())  # as another process has it
    with pytest.raises(RateLimited, match="of your chats are being answered"):
        begin(chat)
    gate.open()
    wait_until(lambda: not ChatSeat.objects.exists())


def test_of_eight_questions_at_once_four_find_a_seat(alice: User) -> None:
    def sit(_number: int) -> bool:
        try:
            return bool(seats.take_seats(alice, 1))
        except RateLimited:
            return False

    assert sum(at_once(8, sit)) == ChatSeat.objects.count() == len(HALL.taken) == SEATS_EACH


def test_one_process_hears_so_many_answers_at_a_time(
    chat: AgentSession, settings: LazySettings
) -> None:
    settings.PLAYGROUND_STREAMS = 0
    with pytest.raises(RateLimited, match="As many chats as this server holds"):
        begin(chat)


def test_a_question_without_a_seat_costs_none_of_the_rate(
    chat: AgentSession, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"ask_playground": "1/h"}
    with monkeypatch.context() as full:
        full.setattr(seats, "SEATS_EACH", 0)
        with pytest.raises(RateLimited, match="of your chats"):
            begin(chat)
    streams, settings.PLAYGROUND_STREAMS = settings.PLAYGROUND_STREAMS, 0
    with pytest.raises(RateLimited, match="this server holds"):
        begin(chat)
    settings.PLAYGROUND_STREAMS = streams
    begin(chat)


def test_a_refused_question_leaves_its_seat(chat: AgentSession, settings: LazySettings) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"ask_playground": "0/h"}
    with pytest.raises(RateLimited, match="0/h"):
        begin(chat)
    assert (ChatSeat.objects.count(), HALL.taken) == (0, {})


def test_the_seats_of_a_process_that_died_are_free_after_their_lease(chat: AgentSession) -> None:
    for _ in range(SEATS_EACH):
        begin(chat).seat.keep()
    ChatSeat.objects.update(expires_at=database_now())
    HALL.taken.clear()
    begin(chat)
    assert ChatSeat.objects.count() == 1


def test_both_sides_of_a_chat_are_seated_or_none(
    alice: User, playbook: Playbook, llm: FakeLLM
) -> None:
    sides = playground.chat_of(alice, open_chat(alice, playbook, bare=True).pk)
    for _ in range(SEATS_EACH - 1):
        begin(sides[0])
    with pytest.raises(RateLimited):
        playground.begin_turns(sessions=sides, by=Principal.of(alice), question="?")
    assert ChatSeat.objects.count() == len(HALL.taken) == SEATS_EACH - 1


def test_a_question_that_comes_when_its_seat_is_taken_is_not_asked(
    chat: AgentSession, alice: User, llm: FakeLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seats, "WAIT", 0)  # the pauses between its three tries
    late = begin(chat)
    ChatSeat.objects.update(expires_at=database_now())
    seats.take_seats(alice, SEATS_EACH)
    answered = late.run(lambda _text: None)
    assert answered.error == "Your question waited too long here. Ask again later."
    assert (llm.count(), ChatSeat.objects.count()) == (0, SEATS_EACH)
