"""Meters every LLM call: a row before the request, completed after the answer; logs and spans.

Spans follow OpenTelemetry's GenAI conventions and are exported only where configured
(config/observability/telemetry.py). Prompts and answers are in them only with OTEL_CAPTURE_CONTENT.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple, ParamSpec, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db import close_old_connections, connection, connections
from opentelemetry import trace
from opentelemetry.context import Context, get_current
from opentelemetry.trace import Span, SpanKind, StatusCode

from billing.models import UsageRecord
from core.http.request_id import request_id
from evolution.engine.cost_budget import Budget
from evolution.engine.llm import CallHeldBack, ChatRequest, LLMError, LLMReply, LLMRequest, Usage
from evolution.models import EvolutionJob, Outcome
from evolution.worker.claims import Claim
from evolution.worker.credentials import credential_for
from evolution.worker.llm_admission import AdmittedCall, LLMCall, ProviderBusy, admit, finish_call

logger = logging.getLogger(__name__)
tracer = trace.get_tracer("ace.evolution")
P = ParamSpec("P")
T = TypeVar("T")
MAX_QUEUE_SECONDS = 15.0
"""Seconds that a call waits for a free slot of its key; then its job waits instead."""
POLL_SECONDS = 0.2
BUSY_MESSAGE = (
    "This API key is at its limit of concurrent calls. The call is retried automatically."
)


@contextmanager
def job_context(claim: Claim) -> Iterator[None]:
    """Log and trace the block."""
    fields = {"job_id": str(claim.job_id), "playbook_id": str(claim.playbook_id)}
    begun = time.monotonic()
    logger.info("evolution claimed", extra=fields)
    try:
        with tracer.start_as_current_span("evolution", record_exception=False) as span:
            span.set_attributes({f"ace.{name}": value for name, value in fields.items()})
            span.set_attribute("ace.request_id", request_id.get())
            yield
    finally:
        logger.info("evolution left", extra={**fields, "took_ms": _elapsed_ms(begun)})


class CallTrace:
    """The span and the log line of one LLM call, from admission to its end on whatever thread.

    `parent`, `known_id`: the span and the request id that the call belongs to.
    """

    def __init__(
        self, request: ChatRequest, *, address: str, parent: Context, known_id: str
    ) -> None:
        self._request, self._known_id, self._begun = request, known_id, time.monotonic()
        self._span = tracer.start_span(f"chat {request.model}", parent, SpanKind.CLIENT)
        self._span.set_attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.request.model": request.model,
                "server.address": address,
                "ace.operation": request.operation,
                "ace.request_id": known_id,
            }
        )
        self._span.set_attribute("gen_ai.request.max_tokens", request.max_tokens)
        output = "json" if isinstance(request, LLMRequest) else "text"
        self._span.set_attribute("gen_ai.output.type", output)
        if settings.OTEL_CAPTURE_CONTENT:
            self._span.set_attribute("gen_ai.input.messages", json.dumps(request.messages))

    def end(self, reply: LLMReply | None = None, error: str = "") -> None:
        """End the span and write the log line; `error` is a code, empty for an answer."""
        if error:
            self._span.set_attribute("error.type", error)
            self._span.set_status(StatusCode.ERROR)
        elif reply is not None:
            _describe_reply(self._span, reply)
        self._span.end()
        fields = {
            "model": self._request.model,
            "operation": self._request.operation,
            "status": error or "answered",
            "tokens": reply.usage.total_tokens if reply and not error else 0,
            "took_ms": _elapsed_ms(self._begun),
        }
        known = request_id.set(self._known_id)
        logger.info("llm call", extra=fields)
        request_id.reset(known)


def _describe_reply(span: Span, reply: LLMReply) -> None:
    span.set_attributes(
        {
            "gen_ai.response.model": reply.model,
            "gen_ai.response.id": reply.request_id,
            "gen_ai.response.finish_reasons": [reply.finish_reason],
            "gen_ai.usage.input_tokens": reply.usage.prompt_tokens,
            "gen_ai.usage.output_tokens": reply.usage.completion_tokens,
        }
    )
    if settings.OTEL_CAPTURE_CONTENT:
        span.set_attribute("gen_ai.output.messages", reply.text)


def _elapsed_ms(begun: float) -> int:
    return round((time.monotonic() - begun) * 1000)


class Payer(NamedTuple):
    """What a call is made for: an evolution, a check, a training, or an agent's session."""

    owner_id: UUID
    playbook_id: UUID | None
    job_id: UUID | None = None


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

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._writer.submit(connections.close_all).result()
        self._writer.shutdown()

    def begin(self, request: ChatRequest) -> "CallUnderWay":
        """Admit and record a call; wait up to MAX_QUEUE_SECONDS for a free slot of its key."""
        call = CallTrace(request, address=self.address, parent=self._span, known_id=self._known_id)
        try:
            # By the writer too: prices are rows.
            reserved = self._write(self.budget.reserve_cost, request) if self.budget else Decimal(0)
            try:
                return CallUnderWay(self._admitted(request), call, reserved)
            except BaseException:
                if self.budget:
                    self.budget.release(reserved)
                raise
        except LLMError as error:
            call.end(error=error.code)
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
