"""Any agent with a playbook before the task and a report after it; and without, when it is off."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from openai import OpenAI

from accounts.models import User
from billing.models import UsageRecord
from core.errors import Conflict
from core.security.scopes import Principal
from evolution.engine.environments import AnswerMatch, NumberMatch, Question, Sample
from evolution.models import AgentSession, Outcome, SessionMessage
from evolution.sessions.chat_agents import ChatAgent, Message, Reply, TooManyTurns, chat_agent
from evolution.sessions.orchestrator import AceOrchestrator, add_playbook, without_citation
from evolution.sessions.recording import SessionReport
from playbooks.models import Playbook
from playbooks.services.reading import read_playbook
from tests.factories import make_playbook
from tests.harness.fake_llm.model import FakeLLM

ASKED: list[Message] = [
    {"role": "system", "content": "You keep a list."},
    {"role": "user", "content": "Add milk"},
]
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
CALL = {
    "content": None,
    "tool_calls": [
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": "add", "arguments": '{"title": "Milk"}'},
        }
    ],
}
DONE = {"content": "Milk is on the list.\n\nUsed: [str-00001], [str-00099]"}


@pytest.fixture
def llm() -> Iterator[FakeLLM]:
    with FakeLLM() as fake:
        yield fake


@pytest.fixture
def agent(llm: FakeLLM) -> ChatAgent:
    """A small agent with one tool, on the openai client."""
    client = OpenAI(api_key="sk-own", base_url=llm.base_url, max_retries=0)
    return chat_agent(client, model="own-model", tools=TOOLS, run_tool=added, temperature=0)


@pytest.fixture
def ace(playbook: Playbook, alice: User) -> AceOrchestrator:
    return AceOrchestrator(by=Principal.of(alice), playbook=playbook)


def added(name: str, arguments: str) -> str:
    return f"{name}: {json.loads(arguments)['title']} is in"


def asked(llm: FakeLLM) -> list[tuple[bytes, dict[str, str]]]:
    """Every byte of every request so far, and its headers."""
    return [(call.raw, call.headers) for call in llm.requests]


def test_off_the_model_is_asked_byte_for_byte_what_it_is_asked_without_us(
    ace: AceOrchestrator, agent: ChatAgent, llm: FakeLLM, settings: LazySettings
) -> None:
    settings.ACE_ENABLED = False
    off = AceOrchestrator(by=ace.by, playbook=ace.playbook)
    llm.say("", CALL, DONE, CALL, DONE)
    without = agent(list(ASKED)).content
    run = off.run(agent, ASKED)
    requests = asked(llm)
    assert len(requests) == 4
    assert requests[:2] == requests[2:]
    assert (run.answer, run.session, AgentSession.objects.count()) == (without, None, 0)


def test_on_only_the_system_message_differs(
    ace: AceOrchestrator, agent: ChatAgent, llm: FakeLLM
) -> None:
    llm.say("", DONE, DONE)
    agent(list(ASKED))
    ace.run(agent, ASKED)
    without, on = (call.body for call in llm.requests)
    assert on["messages"][0]["content"].startswith("You keep a list.\n\nYou have a playbook")
    assert "[str-00001] Read the failing test before the code." in on["messages"][0]["content"]
    on["messages"][0] = without["messages"][0]
    assert on == without


def test_what_was_said_and_done_is_in_the_session(
    ace: AceOrchestrator, agent: ChatAgent, llm: FakeLLM
) -> None:
    llm.say("", CALL, DONE)
    run = ace.run(agent, ASKED)
    assert run.session is not None
    rows = list(run.session.messages.all())
    assert [row.role for row in rows] == ["system", "user", "assistant", "tool", "assistant"]
    assert rows[2].tool_calls == [{"id": "call_1", "name": "add", "arguments": '{"title": "Milk"}'}]
    assert (rows[3].tool_name, rows[3].content) == ("add", "add: Milk is in")
    assert (run.session.source, run.session.is_open) == ("orchestrator", True)


def test_the_answer_cites_what_the_version_holds_and_says_so_apart(
    ace: AceOrchestrator, agent: ChatAgent, llm: FakeLLM
) -> None:
    llm.say("", DONE)
    run = ace.run(agent, ASKED)
    assert (run.answer, run.cited) == ("Milk is on the list.", ["str-00001"])
    assert SessionMessage.objects.last().cited_bullets == ["str-00001"]  # type: ignore[union-attr]  # there is one


def test_who_knows_how_it_went_reports_the_run(
    ace: AceOrchestrator, agent: ChatAgent, llm: FakeLLM
) -> None:
    llm.say("", CALL, DONE)
    run = ace.run(agent, ASKED)
    closed = ace.report(run, SessionReport("success", notes="lesson: say the shop"))
    outcome = closed.session.outcome
    assert outcome is not None
    assert (outcome.task_description, outcome.cited_bullets) == ("Add milk", ["str-00001"])
    assert 'assistant calls add({"title": "Milk"})' in outcome.reasoning_trace
    assert "You have a playbook" not in outcome.reasoning_trace


def test_an_environment_judges_and_the_outcome_is_reported(
    playbook: Playbook, alice: User, agent: ChatAgent, llm: FakeLLM
) -> None:
    ace = AceOrchestrator(by=Principal.of(alice), playbook=playbook, environment=AnswerMatch())
    llm.say("", {"content": "Five\nUsed: none"})
    sample = Sample(Question("1", "2 + 2?"), "four")
    run = ace.run(agent, [{"role": "user", "content": "2 + 2?"}], sample=sample)
    outcome = Outcome.objects.get()
    assert run.feedback is not None
    assert (run.feedback.status, outcome.status, outcome.signal) == (
        *("failure", "failure"),
        "ground_truth",
    )
    assert "The right answer: four" in outcome.notes


def test_the_advice_stays_within_its_tokens(
    playbook: Playbook, alice: User, agent: ChatAgent, llm: FakeLLM
) -> None:
    llm.say("", DONE)
    AceOrchestrator(by=Principal.of(alice), playbook=playbook, view_tokens=30).run(agent, ASKED)
    told = llm.requests[0].body["messages"][0]["content"]
    assert "[str-00001]" in told
    assert "[mis-00003]" not in told


def test_an_agent_that_fails_leaves_a_closed_session_and_its_own_error(
    ace: AceOrchestrator,
) -> None:
    def broken(messages: list[Message]) -> Reply:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ace.run(broken, ASKED)
    session = AgentSession.objects.get()
    assert (session.is_open, session.outcome, session.message_count) == (False, None, 2)


def test_a_model_that_only_calls_tools_is_stopped(agent: ChatAgent, llm: FakeLLM) -> None:
    llm.say("", *[CALL] * 12)
    with pytest.raises(TooManyTurns):
        agent(list(ASKED))


def test_a_transcript_too_long_to_keep_does_not_cost_the_answer(
    ace: AceOrchestrator, settings: LazySettings
) -> None:
    settings.MAX_SESSION_MESSAGES = 3
    steps = [{"role": "tool", "tool_call_id": "1", "content": "x" * 100_000 + "\0\ud800"}] * 5
    run = ace.run(lambda messages: Reply("Done", steps), ASKED)
    assert run.answer == "Done"
    assert SessionMessage.objects.count() <= 3


def test_roles_and_parts_of_other_programs_are_understood(ace: AceOrchestrator) -> None:
    parts = [{"type": "text", "text": "Add milk"}, {"type": "image_url", "image_url": {}}]
    asked: list[Message] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": parts},
    ]
    run = ace.run(lambda messages: Reply("Done"), asked)
    assert run.session is not None
    said = list(run.session.messages.values_list("role", flat=True))
    assert said == ["system", "user", "assistant"]
    assert run.session.title == "Add milk"


def test_off_nothing_can_be_reported(ace: AceOrchestrator) -> None:
    off = AceOrchestrator(by=ace.by, playbook=ace.playbook, enabled=False)
    run = off.run(lambda messages: Reply("Done"), ASKED)
    with pytest.raises(Conflict, match="off"):
        off.report(run, SessionReport("success"))


def test_without_a_system_message_the_playbook_gets_one(ace: AceOrchestrator) -> None:
    reading = read_playbook(playbook=ace.playbook, by=ace.by)
    told = add_playbook(ASKED[1:], reading)
    assert [message["role"] for message in told] == ["system", "user"]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Yes.\nUsed: [str-00001]", "Yes."),
        ("Used: this one\nYes.", "Used: this one\nYes."),
        ("Yes.", "Yes."),
    ],
    ids=["at the end", "in the text", "without"],
)
def test_only_the_last_line_is_the_citation(said: str, answer: str) -> None:
    assert without_citation(said) == answer


@pytest.mark.django_db(transaction=True)
def test_the_generator_solves_a_sample_and_its_call_is_the_sessions(
    llm: FakeLLM, playbook: Playbook, alice: User, settings: LazySettings
) -> None:
    settings.ACE_ENGINE, settings.OPENAI_API_KEY = "openai", "sk-test"
    settings.OPENAI_BASE_URL = llm.base_url
    ace = AceOrchestrator(by=Principal.of(alice), playbook=playbook, environment=NumberMatch())
    run = ace.solve(Sample(Question("1", "What is 40 + 2? 42"), "42"))
    record: Any = UsageRecord.objects.get()
    assert run.session is not None
    assert (record.session_id, record.job_id, record.operation) == (
        run.session.pk,
        None,
        "generate",
    )
    told = run.session.messages.get(role="generator")
    assert (told.usage, told.cited_bullets, told.tokens) == (
        *(record, ["str-00001"]),
        record.total_tokens,
    )
    assert Outcome.objects.get().status == "success"


def test_the_example_of_the_documentation_runs(
    llm: FakeLLM, alice: User, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", llm.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-own")
    make_playbook(alice, name="Planning")
    llm.say("", DONE)
    text = (Path(__file__).parents[2] / "docs" / "SESSIONS.md").read_text()
    code = text.partition("```python\n")[2].partition("```")[0]
    exec(code.replace("you@example.org", alice.email), {})  # noqa: S102 - our own document
    assert capsys.readouterr().out == "Milk is on the list. ['str-00001']\n"
    assert Outcome.objects.get().notes == "lesson: ask for the time zone first"
    assert len(code.strip().splitlines()) <= 20
