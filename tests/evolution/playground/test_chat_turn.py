"""A turn of a chat: asked with the playbook, metered and stored with what it cites."""

from concurrent.futures import Future

import pytest
from django.conf import LazySettings

from accounts.keys.llm_keys import remove_llm_key, set_llm_key
from accounts.models import User
from billing.models import Plan, UsageRecord
from core.errors import Conflict, Invalid, RateLimited
from core.security.scopes import Principal
from evolution.engine.circuit_breaker import MIN_FAILURES
from evolution.models import AgentSession, Outcome
from evolution.playground import chat_lifecycle, chat_turn
from evolution.playground.chat_display import chat_side
from evolution.playground.chat_turn import ChatTurn, TurnResult
from evolution.web.playground_views import end_event
from playbooks.document.operations import Operation
from playbooks.models import Playbook
from playbooks.services.editing import edit_playbook
from tests.factories import make_outcome
from tests.harness.fake_llm.model import ALWAYS, FakeLLM
from tests.harness.plans import limit_spending, set_limits
from tests.harness.standard_plans import load_standard_plans
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.postgres


def ask(*chats: AgentSession, question: str = "Why is the build red?") -> list[TurnResult]:
    by = Principal.of(chats[0].user)
    turns = [chat_lifecycle.begin_turn(session=chat, by=by, question=question) for chat in chats]
    return [answer(turn) for turn in turns]


def answer(turn: ChatTurn) -> TurnResult:
    """The turn's result, on a thread as for a page."""
    waiting: Future[TurnResult] = Future()
    turn.start(lambda _text: None, waiting.set_result)
    return waiting.result(timeout=20)


def test_of_two_answers_at_once_each_reader_gets_the_own_one(
    chat: AgentSession, alice: User, llm: FakeLLM
) -> None:
    llm.tell("The first.")
    llm.tell("The second.")
    first, _second = ask(chat)[0], ask(chat)[0]
    told = end_event(first, lambda _answered: chat_side(chat, user=alice)).decode()
    assert "The first." in told
    assert "The second." not in told


def test_an_answer_is_stored_with_its_question_its_bullets_and_its_cost(
    chat: AgentSession, llm: FakeLLM
) -> None:
    answered = ask(chat)[0]
    asked, said = chat.messages.all()
    assert (asked.role, asked.content) == ("user", "Why is the build red?")
    assert (said.role, said.cited_bullets, answered.answer) == ("assistant", ["str-00001"], said)
    assert said.usage and (said.usage.session_id, said.usage.operation) == (chat.pk, "generate")
    assert said.tokens == said.usage.total_tokens == llm.served_tokens > 0


def test_the_model_reads_the_playbook_and_what_was_said_before(
    chat: AgentSession, llm: FakeLLM
) -> None:
    ask(chat)
    ask(chat, question="And then?")
    messages = llm.requests[-1].body["messages"]
    assert [one["role"] for one in messages] == ["system", "user", "assistant", "user"]
    assert "[str-00001] Read the failing test before the code." in messages[0]["content"]
    assert "helpful=" not in messages[0]["content"]


def test_two_versions_are_asked_at_the_same_time_and_each_reads_its_own(
    alice: User, playbook: Playbook, llm: FakeLLM
) -> None:
    by = Principal.of(alice)
    change = Operation("UPDATE", id="str-00001", content="Read the log first.")
    edit_playbook(playbook=playbook, by=by, operations=[change])
    first = open_chat(alice, playbook, version=2, against=1)
    gate = llm.hold("chat")
    sides = chat_lifecycle.chat_sessions(alice, first.pk)
    turns = [chat_lifecycle.begin_turn(session=one, by=by, question="How?") for one in sides]
    for turn in turns:
        turn.start(lambda _text: None, lambda _answered: None)
    gate.wait_for(2)
    read = [call.body["messages"][0]["content"] for call in llm.requests]
    assert sorted("Read the log first." in text for text in read) == [False, True]
    gate.open()
    wait_until(lambda: not chat_turn._answers)


def test_without_the_playbook_only_the_question_is_sent(
    alice: User, playbook: Playbook, llm: FakeLLM
) -> None:
    first = open_chat(alice, playbook, bare=True)
    bare = chat_lifecycle.chat_sessions(alice, first.pk)[1]
    ask(bare)
    assert llm.requests[-1].body["messages"] == [
        {"role": "user", "content": "Why is the build red?"}
    ]


def test_a_prompt_that_is_too_long_is_asked_once_more_in_short(
    chat: AgentSession, llm: FakeLLM
) -> None:
    for number in range(3):
        ask(chat, question=f"Question {number}")
    llm.fail("chat", status=400, code="context_length_exceeded")
    assert ask(chat)[0].answer is not None
    full, short = (len(call.body["messages"]) for call in llm.requests[-2:])
    assert (full, short) == (8, 4)


def test_a_judged_chat_is_an_outcome_by_a_person_with_the_chat_as_its_trace(
    chat: AgentSession, alice: User
) -> None:
    ask(chat)
    chat_lifecycle.rate_chat(
        session=chat, by=Principal.of(alice), outcome="partial", notes="lesson: Ask for the log."
    )
    row = Outcome.objects.get()
    assert (row.status, row.signal, row.cited_bullets) == ("partial", "human", ["str-00001"])
    assert (row.version, row.version_assumed) == (chat.version, False)
    assert "Why is the build red?" in row.reasoning_trace
    assert AgentSession.objects.get().outcome == row


def test_a_judged_chat_takes_no_more_questions(chat: AgentSession, alice: User) -> None:
    ask(chat)
    chat_lifecycle.rate_chat(session=chat, by=Principal.of(alice), outcome="success")
    with pytest.raises(Conflict) as raised:
        ask(AgentSession.objects.get())
    assert raised.value.code == "session_closed"


def test_what_was_never_asked_cannot_be_judged(chat: AgentSession, alice: User) -> None:
    with pytest.raises(Conflict) as raised:
        chat_lifecycle.rate_chat(session=chat, by=Principal.of(alice), outcome="success")
    assert raised.value.code == "no_answer"


def test_without_a_key_nothing_can_be_asked(alice: User, playbook: Playbook) -> None:
    with pytest.raises(Conflict) as raised:
        open_chat(alice, playbook)
    assert raised.value.code == "no_model"


def test_the_operators_key_asks_only_the_operators_models(
    alice: User, playbook: Playbook, llm: FakeLLM
) -> None:
    with pytest.raises(Invalid):
        open_chat(alice, playbook, model="the-dearest")


def test_a_key_of_ones_own_pays_for_any_model_and_unknown_cost_stays_unknown(
    alice: User, playbook: Playbook, llm: FakeLLM, settings: LazySettings
) -> None:
    settings.ACE_ENGINE = "rules"
    set_llm_key(user=alice, api_key="sk-of-alice")
    ask(open_chat(alice, playbook, model="the-dearest"))
    assert llm.requests[0].headers["authorization"] == "Bearer sk-of-alice"
    assert llm.requests[0].body["model"] == "the-dearest"
    assert UsageRecord.objects.get().cost_usd is None


def test_an_address_of_ones_own_that_leads_inside_by_now_is_not_called(
    alice: User, playbook: Playbook, llm: FakeLLM, settings: LazySettings
) -> None:
    settings.PRIVATE_HOSTS = ["localhost"]
    set_llm_key(user=alice, api_key="sk-of-alice", base_url="https://localhost/v1")
    chat = open_chat(alice, playbook)
    settings.PRIVATE_HOSTS = []
    assert "not on the public internet" in ask(chat)[0].error
    assert llm.count("chat") == 0


def test_a_chat_of_ones_own_key_does_not_go_on_at_the_operators_cost(
    alice: User, playbook: Playbook, llm: FakeLLM
) -> None:
    set_llm_key(user=alice, api_key="sk-of-alice")
    chat = open_chat(alice, playbook, model="the-dearest")
    remove_llm_key(user=alice)
    with pytest.raises(Invalid):
        ask(chat)
    assert llm.count("chat") == 0


@pytest.mark.parametrize("question", ["", "   \n"])
def test_an_empty_question_is_refused(chat: AgentSession, question: str) -> None:
    with pytest.raises(Invalid):
        ask(chat, question=question)


def test_questions_are_limited(chat: AgentSession, settings: LazySettings) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"ask_playground": "1/h"}
    ask(chat)
    with pytest.raises(RateLimited):
        ask(chat)


def test_the_days_limit_on_cost_holds_here_too(chat: AgentSession, llm: FakeLLM) -> None:
    limit_spending("0.00")
    answered = ask(chat)[0]
    assert answered.answer is None
    assert answered.error.startswith("Today's cost limit of this account")
    assert answered.error.endswith("Ask again later.")
    assert (llm.count(), UsageRecord.objects.count()) == (0, 0)


def test_the_plans_tokens_hold_here_too(
    chat: AgentSession, llm: FakeLLM, settings: LazySettings
) -> None:
    settings.BILLING_ENABLED = True
    load_standard_plans()
    for plan in Plan.objects.all():
        set_limits(plan, monthly_tokens=5)
    answered = ask(chat)[0]
    assert "plan includes 5 tokens a month" in answered.error
    assert (llm.count(), UsageRecord.objects.count()) == (0, 0)


def test_a_provider_that_is_down_is_left_alone(chat: AgentSession, llm: FakeLLM) -> None:
    llm.fail("chat", status=500, times=ALWAYS)
    while llm.count() < MIN_FAILURES:
        ask(chat)
    made = llm.count()
    answered = ask(chat)[0]
    assert answered.error == "The provider has not answered for a while. Ask again later."
    assert (llm.count(), chat.messages.count()) == (made, 0)


def test_what_a_chat_taught_can_be_judged_beside_other_outcomes(
    chat: AgentSession, alice: User, playbook: Playbook
) -> None:
    make_outcome(playbook, alice)
    ask(chat)
    made = chat_lifecycle.rate_chat(session=chat, by=Principal.of(alice), outcome="success")
    assert made is not None
    assert made.pending_outcomes == 2


def begin(chat: AgentSession) -> ChatTurn:
    return chat_lifecycle.begin_turn(session=chat, by=Principal.of(chat.user), question="?")


def open_chat(user: User, playbook: Playbook, **fields: object) -> AgentSession:
    fields.setdefault("model", "gpt-4o-mini")
    return chat_lifecycle.open_chat(by=Principal.of(user), playbook=playbook, **fields)  # type: ignore[arg-type]  # named by each test
