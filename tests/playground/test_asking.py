"""A turn of a chat: asked with the playbook, metered and stored with what it cites."""

from accounts.scopes import Principal
from evolution import playground
from evolution.models import AgentSession
from evolution.worker.conversing import Answered
from tests.fake_llm import FakeLLM


def ask(chat: AgentSession, question: str = "Why is the build red?") -> Answered:
    by = Principal.of(chat.user)
    turn = playground.begin_turn(session=chat, by=by, question=question)
    return playground.ask_all([turn])[0]


def test_an_answer_is_stored_with_its_question_its_bullets_and_its_cost(
    chat: AgentSession, llm: FakeLLM
) -> None:
    answered = ask(chat)
    asked, said = chat.messages.all()
    assert (asked.role, asked.content) == ("user", "Why is the build red?")
    assert (said.role, said.cited_bullets, answered.answer) == ("assistant", ["str-00001"], said)
    assert said.usage and (said.usage.session_id, said.usage.operation) == (chat.pk, "generate")
    assert said.tokens == said.usage.total_tokens == llm.served_tokens > 0


def test_the_model_reads_the_playbook_and_what_was_said_before(
    chat: AgentSession, llm: FakeLLM
) -> None:
    ask(chat)
    ask(chat, "And then?")
    roles = [message["role"] for message in llm.requests[-1].body["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    system = llm.requests[-1].body["messages"][0]["content"]
    assert "[str-00001] Read the failing test before the code." in system
    assert "helpful=" not in system
