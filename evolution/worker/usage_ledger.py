"""Meters every LLM call: a row before the request, completed after the answer."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from types import TracebackType
from typing import ParamSpec, Protocol, TypeVar
from uuid import UUID

from django.db import close_old_connections, connection, connections

from billing.models import UsageRecord
from evolution.engine.cost_budget import Budget
from evolution.engine.llm import CallHeldBack, Usage
from evolution.models import EvolutionJob, Outcome
from evolution.worker.credentials import credential_for
from evolution.worker.llm_admission import AdmittedCall, LLMCall, ProviderBusy, admit, finish_call

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
        self.last: UsageRecord | None = None
        """The record of the call that ended last."""
        self._closing = threading.Event()
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
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

    def begin(self, *, step: str, operation: str, model: str, most: Usage) -> AdmittedCall:
        """Admit and record a call; wait up to MAX_QUEUE_SECONDS for a free slot of its key."""
        until = time.monotonic() + MAX_QUEUE_SECONDS
        while True:
            try:
                return self._write(lambda: admit(self._call(step, operation, model, most)))
            except ProviderBusy as busy:
                if time.monotonic() > until or self._closing.wait(POLL_SECONDS):
                    message, wait = str(busy) or BUSY_MESSAGE, MAX_QUEUE_SECONDS
                    raise CallHeldBack("provider_busy", message, retry_after=wait) from None

    def _call(self, step: str, operation: str, model: str, most: Usage) -> LLMCall:
        return LLMCall(
            owner_id=self.payer.owner_id,
            playbook_id=self.payer.playbook_id,
            job_id=self.payer.job_id,
            api_key_id=self._key_behind(step),
            credential=self.credential,
            step=step,
            operation=operation,
            model=model,
            most=most,
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

    def finish(
        self, entry: AdmittedCall, *, usage: Usage, model: str, request_id: str, error: str = ""
    ) -> None:
        """Record what the call used; `error` is a code, empty for an answer."""
        record = self._write(
            finish_call, entry, usage=usage, model=model, request_id=request_id, error=error
        )
        self.last = record
        if self.budget is not None:
            self.budget.pay(record.cost_usd)

    def _write(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        def fresh() -> T:
            close_old_connections()
            return function(*args, **kwargs)

        return self._writer.submit(fresh).result()
