"""Meters every physical call of a model: a row before the request, completed after the answer."""

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
"""Seconds that a call waits in line for its turn; then its job waits instead."""
POLL_SECONDS = 0.2
BUSY_MESSAGE = "As many calls of this API key run as may run at once. The next try comes by itself."


class Payer(Protocol):
    """For whom a call is made: a Claim, a training run, or an agent's session."""

    @property
    def owner_id(self) -> UUID: ...

    @property
    def playbook_id(self) -> UUID | None: ...

    @property
    def job_id(self) -> UUID | None: ...


class UsageLedger:
    """The engine's Ledger, written as UsageRecord rows; a `budget` pays for each of them.

    A call that had better not be made now is not admitted (evolution.worker.llm_admission). `on_plan`:
    its tokens count against the plan of the payer's owner.

    Calls come from the engine's threads. One thread of our own does all the writing, so that a
    job needs one database connection for it and that connection is closed at the end.
    """

    def __init__(self, payer: Payer, budget: Budget | None = None, *, on_plan: bool = True) -> None:
        self.payer = payer
        self.budget = budget
        self.on_plan = on_plan
        self.credential = credential_for(payer.owner_id)
        self.last: UsageRecord | None = None
        """The call that ended last: whose calls come one by one finds its own here."""
        self._closing = threading.Event()
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        # While the engine is made ready; a database that is away is news of the first call.
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
        """The row of a call that is about to be made; waits a little for a free slot of its key."""
        until = time.monotonic() + MAX_QUEUE_SECONDS
        while True:
            try:
                return self._write(self._admit, step, operation, model, most)
            except ProviderBusy as full:
                if time.monotonic() > until or self._closing.wait(POLL_SECONDS):
                    message = str(full) or BUSY_MESSAGE
                    raise CallHeldBack(
                        "line_full", message, retry_after=MAX_QUEUE_SECONDS
                    ) from None

    def _admit(self, step: str, operation: str, model: str, most: Usage) -> AdmittedCall:
        return admit(self._call(step, operation, model, most))

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
        """The key that caused the call: whose outcome is reflected on, else who triggered the job.

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
        """The keys by outcome: asked for once, they would be a query for each call in line."""
        rows = Outcome.objects.filter(job=self.payer.job_id, api_key__isnull=False)
        return {str(pk): key for pk, key in rows.values_list("pk", "api_key_id")}

    def finish(
        self, entry: AdmittedCall, *, usage: Usage, model: str, request_id: str, error: str = ""
    ) -> None:
        """The row carries what the call used; `error` is a code, empty for an answer."""
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
