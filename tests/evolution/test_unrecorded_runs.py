"""An agent's answer, and its error, never depend on what could be recorded of the run."""

from collections.abc import Callable
from contextlib import ExitStack

import pytest
from django.conf import LazySettings
from django.db import OperationalError, connection

from accounts.models import User
from core.errors import Conflict
from core.security.scopes import Principal
from evolution.engine.environments import AnswerMatch, Question, Sample
from evolution.models import AgentSession
from evolution.sessions.chat_agents import Message, Reply
from evolution.sessions.orchestrator import AceOrchestrator
from evolution.sessions.recording import SessionReport, close_session, delete_session
from playbooks.models import Playbook
from tests.evolution.test_orchestrator import ASKED

pytestmark = pytest.mark.databases


@pytest.fixture
def ace(playbook: Playbook, alice: User) -> AceOrchestrator:
    return AceOrchestrator(by=Principal.of(alice), playbook=playbook)


@pytest.mark.parametrize("end", [close_session, delete_session])
def test_a_session_that_ends_meanwhile_costs_neither_answer_nor_error(
    ace: AceOrchestrator, end: Callable[..., object]
) -> None:
    def working(messages: list[Message]) -> Reply:
        end(session=AgentSession.objects.latest("created_at"), by=ace.by)
        if len(messages) == 2:
            return Reply("Done")
        raise ZeroDivisionError

    assert ace.run(working, ASKED).answer == "Done"
    with pytest.raises(ZeroDivisionError):
        ace.run(working, [*ASKED, *ASKED])


def test_without_room_for_a_session_the_agent_works_and_the_run_says_so(
    ace: AceOrchestrator, settings: LazySettings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"open_session": "0/h"}
    run = ace.run(lambda messages: Reply(f"{len(messages)} heard\nUsed: [str-00001]"), ASKED)
    assert (run.answer, run.cited, run.session) == ("2 heard", ["str-00001"], None)
    assert "open_session" in run.unrecorded
    assert ("rate_limited" in caplog.text, "heard" in caplog.text) == (True, False)
    with pytest.raises(Conflict, match="not recorded"):
        ace.report(run, SessionReport("success"))


@pytest.mark.parametrize("is_recorded", [True, False], ids=["recorded", "unrecorded"])
def test_a_database_that_goes_while_the_agent_works_costs_neither_answer_nor_error(
    ace: AceOrchestrator, settings: LazySettings, is_recorded: bool
) -> None:
    if not is_recorded:
        settings.RATE_LIMITS = settings.RATE_LIMITS | {"open_session": "0/h"}

    def working(messages: list[Message], fails: bool = False) -> Reply:
        gone.enter_context(connection.execute_wrapper(away))
        return Reply(f"{1 // (not fails)} done")

    with ExitStack() as gone:
        assert ace.run(working, ASKED).answer == "1 done"
    with ExitStack() as gone, pytest.raises(ZeroDivisionError):
        ace.run(lambda messages: working(messages, fails=True), ASKED)


def test_without_room_for_a_report_the_answer_is_judged_all_the_same(
    playbook: Playbook, alice: User, settings: LazySettings
) -> None:
    none = {"report_outcome": "0/h", "report_outcome_over": "0/h"}
    settings.RATE_LIMITS = settings.RATE_LIMITS | none
    ace = AceOrchestrator(by=Principal.of(alice), playbook=playbook, environment=AnswerMatch())
    run = ace.run(lambda _: Reply("four"), ASKED, sample=Sample(Question("1", "2 + 2?"), "four"))
    assert run.feedback is not None
    assert (run.feedback.status, run.report) == ("success", None)
    assert "report_outcome" in run.unrecorded


def away(*_: object) -> None:
    """For `execute_wrapper`: a database that answers nothing."""
    raise OperationalError
