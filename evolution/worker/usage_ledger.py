"""Meters every LLM call: a row before the request, completed after the answer."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from types import TracebackType
from typing import ParamSpec, Protocol, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from django.db import close_old_connections, connection, connections
from opentelemetry.context import get_current

from billing.models import UsageRecord
from core.http.request_id import request_id
from evolution.engine.cost_budget import Budget
from evolution.engine.llm import CallHeldBack, ChatRequest, LLMError, LLMReply, Usage
from evolution.models import EvolutionJob, Outcome
from evolution.worker.credentials import credential_for
from evolution.worker.llm_admission import AdmittedCall, LLMCall, ProviderBusy, admit, finish_call
from evolution.worker.tracing import CallTrace

P = ParamSpec("P")
T = TypeVar("T")
MAX_QUEUE_SECONDS = 15.0
"""Seconds that a call waits for a free slot of its key; then its job waits instead."""
POLL_SECONDS = 0.2
BUSY_MESSAGE = (
    "This API key is at its limit of concurrent calls. The call is retried automatically."
)


class Payer(Protocol):
    """What a call is made for: a Claim, a training run, or an agent's session."""

    @property
    def owner_id(self) -> UUID: ...

    @property
    def playbook_id(self) -> UUID | None: ...

    @property
    def job_id(self) -> UUID | None: ...


@dataclass(frozen=True)
class CallUnderWay:
    """A call in the ledger; `reserved`: US dollars of the budget that are held for it."""

    admitted: AdmittedCall
    trace: CallTrace
    reserved: Decimal


class UsageLedger:
    """The engine's Ledger, written as UsageRecord rows; a `budget` pays for each of them.

    `llm_admission` may refuse a call. `on_plan`: its tokens count against the owner's plan.

    Calls come from the engine's threads. One writer thread serves them all, so that a job needs
    one database connection for it, which is closed at the end.
    """

    def __init__(self, payer: Payer, budget: Budget | None = None, *, on_plan: bool = True) -> None:
        self.payer = payer
        self.budget = budget
        self.on_plan = on_plan
        self.credential = credential_for(payer.owner_id)
        self.address = urlsplit(self.credential.base_url).hostname or "openai"
        # Calls come from other threads: what they belong to is kept here.
        self._span, self._known_id = get_current(), request_id.get()
        self.last: UsageRecord | None = None
        """The record of the call that ended last."""
        self._closing = threading.Event()
        self._writer = ThreadPoolExecutor(
            1, "ledger", initializer=request_id.set, initargs=(self._known_id,)
        )
        # Connects while the engine is set up; an error shows at the first call.
        self._writer.submit(connection.ensure_connection)

    def __enter__(self) -> "UsageLedger":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._writer.submit(connections.close_all).result()
        self._writer.shutdown()

    def begin(self, request: ChatRequest) -> "CallUnderWay":
        """Admit and record a call; wait up to MAX_QUEUE_SECONDS for a free slot of its key."""
        trace = CallTrace(request, address=self.address, parent=self._span, known_id=self._known_id)
        try:
            reserved = self.budget.reserve_cost(request) if self.budget else Decimal(0)
            try:
                return CallUnderWay(self._admitted(request), trace, reserved)
            except BaseException:
                if self.budget:
                    self.budget.release(reserved)
                raise
        except LLMError as error:
            trace.end(error=error.code)
            raise

    def _admitted(self, request: ChatRequest) -> AdmittedCall:
        until = time.monotonic() + self.queue_seconds()
        while True:
            try:
                return self._write(lambda: admit(self._call(request)))
            except ProviderBusy as busy:
                if time.monotonic() > until or self._closing.wait(POLL_SECONDS):
                    message, wait = str(busy) or BUSY_MESSAGE, self.queue_seconds()
                    raise CallHeldBack("provider_busy", message, retry_after=wait) from None

    def queue_seconds(self) -> float:
        return MAX_QUEUE_SECONDS

    def _call(self, request: ChatRequest) -> LLMCall:
        return LLMCall(
            owner_id=self.payer.owner_id,
            playbook_id=self.payer.playbook_id,
            job_id=self.payer.job_id,
            api_key_id=self._key_behind(request.step),
            credential=self.credential,
            step=request.step,
            operation=request.operation,
            model=request.model,
            most=Usage.most(request),
            on_plan=self.on_plan,
        )

    def _key_behind(self, step: str) -> UUID | None:
        """The API key behind the call: of the outcome's reporter, else of the job's trigger.

        None for a person, for the time rule, and for a training's samples.
        """
        operation, _, outcome = step.partition(":")
        if operation == "reflect":
            return self._reporters.get(outcome)
        if self.payer.job_id is None:
            return None
        jobs = EvolutionJob.objects.filter(pk=self.payer.job_id)
        return jobs.values_list("triggered_by_key_id", flat=True).first()

    @cached_property
    def _reporters(self) -> dict[str, UUID]:
        """The API keys by outcome id, in one query for the whole job."""
        rows = Outcome.objects.filter(job=self.payer.job_id, api_key__isnull=False)
        return {str(pk): key for pk, key in rows.values_list("pk", "api_key_id")}

    def finish(self, entry: "CallUnderWay", reply: LLMReply, error: str = "") -> None:
        """Record what the call used; `error` is a code, empty for an answer."""
        record = self._write(
            finish_call,
            entry.admitted,
            usage=reply.usage,
            model=reply.model,
            request_id=reply.request_id,
            error=error,
        )
        self.last = record
        if self.budget is not None:
            self.budget.release(entry.reserved, record.cost_usd)
        entry.trace.end(reply, error)

    def _write(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        def fresh() -> T:
            close_old_connections()
            return function(*args, **kwargs)

        return self._writer.submit(fresh).result()
