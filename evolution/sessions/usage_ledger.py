"""Meters the LLM calls of an agent's session."""

from dataclasses import dataclass, replace
from uuid import UUID

from evolution.engine.llm import ChatRequest
from evolution.models import AgentSession
from evolution.worker.llm_admission import LLMCall
from evolution.worker.usage_ledger import UsageLedger

PERSON_QUEUE_SECONDS = 60.0
"""Seconds that a person's call waits for a slot of its key."""


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

    def queue_seconds(self) -> float:
        # One wait, in which the call comes first, instead of several with pauses between.
        return PERSON_QUEUE_SECONDS

    def _call(self, request: ChatRequest) -> LLMCall:
        return replace(super()._call(request), session_id=self._session.pk)

    def _key_behind(self, step: str) -> UUID | None:
        return self._session.api_key_id
