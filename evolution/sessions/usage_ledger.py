"""Meters the LLM calls of an agent's session."""

from dataclasses import dataclass
from uuid import UUID

from evolution.engine.llm import Usage
from evolution.models import AgentSession
from evolution.worker.credentials import Credential
from evolution.worker.llm_admission import LLMCall
from evolution.worker.usage_ledger import UsageLedger


@dataclass(frozen=True)
class SessionPayer:
    """The payer of a session's calls: its user."""

    session: AgentSession
    job_id: None = None

    @property
    def owner_id(self) -> UUID:
        return self.session.user_id

    @property
    def playbook_id(self) -> UUID | None:
        return self.session.playbook_id


class SessionLedger(UsageLedger):
    """The engine's Ledger for one session; `last` is the record of the call just made."""

    def __init__(self, session: AgentSession) -> None:
        super().__init__(SessionPayer(session))
        self._session = session

    def _call(self, step: str, operation: str, model: str, most: Usage) -> LLMCall:
        return session_call(
            self._session,
            credential=self.credential,
            step=step,
            operation=operation,
            model=model,
            most=most,
        )


def session_call(
    session: AgentSession,
    *,
    credential: Credential,
    step: str,
    operation: str,
    model: str,
    most: Usage,
) -> LLMCall:
    """A call for this session, to be admitted by `lines.admit` and dismissed at its end."""
    return LLMCall(
        owner_id=session.user_id,
        playbook_id=session.playbook_id,
        job_id=None,
        session_id=session.pk,
        api_key_id=session.api_key_id,
        credential=credential,
        step=step,
        operation=operation,
        model=model,
        most=most,
    )
