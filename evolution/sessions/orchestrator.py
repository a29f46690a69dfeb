"""AceOrchestrator: runs a chat agent with a playbook and reports the outcome.

    ace = AceOrchestrator(by=Principal.of(user), playbook=playbook)
    run = ace.run(agent, [{"role": "user", "content": "Plan my week"}])
    ace.report(run, SessionReport("success", notes="lesson: ask for the time zone first"))

With ACE_ENABLED off the agent gets its messages unchanged, and nothing is read, stored or
reported: its requests to the model are the same as without ACE, byte for byte.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from django.conf import settings
from django.db import DatabaseError

from billing.models import UsageRecord
from core.errors import AceError, Conflict, NotFound, TooLarge
from core.security.scopes import Principal
from evolution.engine.environments import Environment, Feedback, Sample, evaluate_sample
from evolution.engine.generator import Generation, generate
from evolution.engine.inputs import PlaybookInput
from evolution.engine.prompt_text import clean_text, truncate_middle
from evolution.models import AgentSession, Outcome, SessionMessage
from evolution.outcomes.reporting import RecordedOutcome
from evolution.sessions.chat_agents import ChatAgent, Message, Reply, as_new_messages, text_of
from evolution.sessions.recording import (
    ClosedSession,
    SessionReport,
    add_messages,
    close_session,
    open_session,
)
from evolution.sessions.usage_ledger import SessionLedger
from evolution.sessions.validation import (
    MAX_MESSAGES_PER_CALL,
    MAX_NAME,
    MAX_TOOL_CALLS,
    NewMessage,
    ToolCall,
    bullets_of,
    cited_in,
)
from evolution.worker.engine_run import connect_llm
from playbooks.models import Playbook, Version
from playbooks.services.loading import document_of, version_of
from playbooks.services.reading import Reading, read_playbook

logger = logging.getLogger(__name__)
VIEW_TOKENS = 4_000
ROLES = {"developer": "system", "function": "tool"}
INSTRUCTIONS = """\
You have a playbook: short pieces of advice that earlier work has taught, one a line, each with its
id in brackets. Follow what fits the task; the task comes first.

{playbook}

When you have answered, end with one line that names the ids of the advice that you really used, for
example `Used: [str-00001]`, or `Used: none`."""


@dataclass(frozen=True)
class TaskRun:
    """The result of one task. `session` is None when ACE was off, or it could not be recorded.

    `report` is set when an environment judged the answer. `unrecorded` says in a sentence why the
    session or the report was not stored; the agent's answer never depends on it.
    """

    answer: str
    cited: Sequence[str] = ()
    session: AgentSession | None = None
    feedback: Feedback | None = None
    report: RecordedOutcome | None = None
    unrecorded: str = ""


@dataclass(frozen=True)
class AceOrchestrator:
    """Runs tasks with a playbook and an environment; `view_tokens` limits the playbook's text."""

    by: Principal
    playbook: Playbook
    environment: Environment | None = None
    view_tokens: int = VIEW_TOKENS
    enabled: bool = field(default_factory=lambda: bool(settings.ACE_ENABLED))

    def run(
        self, agent: ChatAgent, messages: Sequence[Message], *, sample: Sample | None = None
    ) -> TaskRun:
        """The agent's answer, with the playbook in its instructions; judged if a sample is given.

        Exceptions of the agent propagate; its session is closed without a report. Without a
        session (rate limit, for example) the agent runs all the same: see `unrecorded`.
        """
        if not self.enabled:
            return TaskRun(agent(list(messages)).content)
        reading = read_playbook(playbook=self.playbook, by=self.by, max_tokens=self.view_tokens)
        asked, version = add_playbook(messages, reading), self._version_of(reading)
        try:
            session = self._open(serving_id=reading.serving_id)
        except (AceError, DatabaseError) as refusal:
            unrecorded, reply = describe_refusal(refusal), agent(asked)
            return self._judged(_task_run(reply, version, unrecorded=unrecorded), sample)
        record_messages(session, as_new_messages(asked))
        with close_on_error(session, self.by):
            reply = agent(asked)
        record_messages(session, as_new_messages(reply.steps))
        record_messages(session, [NewMessage("assistant", reply.content, tokens=reply.tokens)])
        return self._judged(_task_run(reply, version, session=session), sample)

    def solve(self, sample: Sample, *, model: str = "") -> TaskRun:
        """The Generator's answer to a sample, on the owner's key or the platform's; judged.

        Raises an LLMError, and Conflict (`ace_disabled`): without ACE there is no Generator.
        """
        if not self.enabled:
            raise Conflict("ACE is off. Set ACE_ENABLED=true.", code="ace_disabled")
        model = model or settings.ACE_GENERATOR_MODEL
        session = self._open(model=model)
        record_messages(session, [NewMessage("user", sample.question.as_text())])
        with close_on_error(session, self.by):
            made, usage = record_generation(session, sample, model=model, tokens=self.view_tokens)
        known = bullets_of(session.version)
        cited = [bullet for bullet in made.bullet_ids if bullet in known]
        text = "\n\n".join(part for part in (made.reasoning, made.final_answer) if part)
        tokens = usage.total_tokens if usage else 0
        answer = NewMessage("generator", text, bullet_ids=cited, tokens=tokens, usage=usage)
        record_messages(session, [answer])
        return self._judged(TaskRun(made.final_answer, cited, session), sample)

    def report(self, run: TaskRun, report: SessionReport) -> ClosedSession:
        """Report the outcome of a run.

        Raises Conflict (`ace_disabled`, `not_recorded`), and what close_session raises.
        """
        if run.session is None and run.unrecorded:
            raise Conflict(f"This run was not recorded: {run.unrecorded}", code="not_recorded")
        if run.session is None:
            raise Conflict("ACE was off: nothing was recorded to report on.", code="ace_disabled")
        return close_session(session=run.session, by=self.by, report=report)

    def _open(self, *, serving_id: str = "", model: str = "") -> AgentSession:
        return open_session(
            by=self.by,
            playbook=self.playbook,
            serving_id=serving_id,
            model=model[:MAX_NAME],
            source=AgentSession.Source.ORCHESTRATOR,
        )

    def _version_of(self, reading: Reading) -> Version | None:
        """The version read, loaded before the agent runs, so that its answer needs no database."""
        with suppress(NotFound, DatabaseError):
            return version_of(self.playbook, reading.version)
        return None

    def _judged(self, run: TaskRun, sample: Sample | None) -> TaskRun:
        """Report the run at once with an environment and a sample; else the session stays open."""
        if self.environment is None or sample is None:
            return run
        generation = Generation(final_answer=run.answer, bullet_ids=list(run.cited))
        feedback = evaluate_sample(self.environment, sample, generation)
        run = replace(run, feedback=feedback)
        if run.session is None:
            return run
        try:
            closed = self.report(run, report_of(feedback, sample))
        except (AceError, DatabaseError) as refusal:
            return replace(run, unrecorded=describe_refusal(refusal))
        return replace(run, report=closed.report)


def _task_run(
    reply: Reply,
    version: Version | None,
    *,
    session: AgentSession | None = None,
    unrecorded: str = "",
) -> TaskRun:
    cited = cited_in(reply.content, version)
    return TaskRun(without_citation(reply.content), cited, session, unrecorded=unrecorded)


def describe_refusal(refusal: AceError | DatabaseError) -> str:
    """The message for `unrecorded`; only the error's code or type is logged."""
    if isinstance(refusal, AceError):
        logger.warning("agent run not recorded: %s", refusal.code)
        return refusal.message
    logger.error("agent run not recorded: %s", type(refusal).__name__)
    return "The database is unavailable."


def add_playbook(messages: Sequence[Message], reading: Reading) -> list[Message]:
    """The messages with the playbook at the end of the first system message, or in one of its own.

    After the agent's own instructions, which stay a prefix that providers can cache.
    """
    text = INSTRUCTIONS.format(playbook=reading.content.strip() or "(It is still empty.)")
    first, *rest = messages or [{}]
    if first.get("role") not in {"system", "developer"}:
        return [{"role": "system", "content": text}, *messages]
    return [{**first, "content": f"{text_of(first.get('content'))}\n\n{text}"}, *rest]


def without_citation(answer: str) -> str:
    """The answer without the line that names the advice used."""
    start = answer.find("Used:", answer.rfind("\n") + 1)
    return answer if start < 0 else answer[:start].rstrip(" \t").rstrip("\n")


def report_of(feedback: Feedback, sample: Sample) -> SessionReport:
    """The environment's feedback as a report."""
    known = f"The right answer: {feedback.ground_truth}" if feedback.ground_truth else ""
    notes = "\n".join(part for part in (feedback.message, known) if part)
    signal = Outcome.Signal.GROUND_TRUTH if sample.target else Outcome.Signal.TEST
    return SessionReport(
        feedback.status,
        task_description=_short(sample.question.as_text(), settings.MAX_TASK_BYTES),
        notes=_short(notes, settings.MAX_NOTES_BYTES),
        signal=signal,
    )


def record_generation(
    session: AgentSession, sample: Sample, *, model: str, tokens: int
) -> tuple[Generation, UsageRecord | None]:
    """The Generator's answer under the session's version, and the record of its last call."""
    assert session.version is not None  # noqa: S101 - opened with a playbook
    book = PlaybookInput(document=document_of(session.version), token_budget=tokens)
    with SessionLedger(session) as ledger:
        made = generate(
            connect_llm(ledger),
            model,
            sample_id=str(session.pk),
            task=sample.question.task,
            context=sample.question.context,
            playbook=book,
        )
        return made, ledger.last


def record_messages(session: AgentSession, messages: Sequence[NewMessage]) -> None:
    """Store the messages, long texts cut in the middle; none once the session is full.

    An answer is not lost because its transcript is too long, or because the session was closed or
    deleted meanwhile.
    """
    kept = [_fitting(message) for message in messages]
    for start in range(0, len(kept), MAX_MESSAGES_PER_CALL):
        try:
            add_messages(session=session, messages=kept[start : start + MAX_MESSAGES_PER_CALL])
        except (TooLarge, Conflict, NotFound):
            return
        except DatabaseError as error:
            logger.error("transcript incomplete: %s", type(error).__name__)
            return


@contextmanager
def close_on_error(session: AgentSession, by: Principal) -> Iterator[None]:
    """Close the session without a report when the block raises."""
    is_done = False
    try:
        yield
        is_done = True
    finally:
        if not is_done:
            # Session deleted, or no database: the error of the block matters.
            with suppress(NotFound, DatabaseError):
                close_session(session=session, by=by)


def _fitting(message: NewMessage) -> NewMessage:
    longest = settings.MAX_MESSAGE_BYTES
    known = SessionMessage.Role.values
    calls = [
        ToolCall(_name(call.id), _name(call.name), _short(call.arguments, longest))
        for call in message.tool_calls[:MAX_TOOL_CALLS]
    ]
    return replace(
        message,
        role=message.role if message.role in known else ROLES.get(message.role, "user"),
        content=_short(message.content, longest),
        tool_calls=calls,
        tool_name=_name(message.tool_name),
        tool_call_id=_name(message.tool_call_id),
    )


def _name(text: str) -> str:
    return clean_text(text).encode()[:MAX_NAME].decode(errors="ignore")


def _short(text: str, most_bytes: int) -> str:
    """Cut to `most_bytes`: a character has up to four bytes, and the note needs room too."""
    text = clean_text(text)
    return text if len(text.encode()) <= most_bytes else truncate_middle(text, most_bytes // 5)
