"""One job seen from outside: its id in every log line, and spans of the job and of its calls.

Spans follow OpenTelemetry's GenAI conventions; they go nowhere unless the process was told where
(config/telemetry.py). What models read and say is in them only with OTEL_CAPTURE_CONTENT.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from django.conf import settings
from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind, StatusCode

from accounts.correlation import request_id
from evolution.engine.llm import LLM, LLMError, LLMReply, LLMRequest
from evolution.models import EvolutionJob
from evolution.worker.claims import Claim

logger = logging.getLogger(__name__)
tracer = trace.get_tracer("ace.evolution")


@contextmanager
def at_work(claim: Claim) -> Iterator[None]:
    """Everything inside is logged under the id of the request that asked for the job."""
    asked = EvolutionJob.objects.filter(pk=claim.job_id).values_list("correlation_id", flat=True)
    known = request_id.set(asked.first() or claim.job_id.hex)
    told = {"job_id": str(claim.job_id), "playbook_id": str(claim.playbook_id)}
    begun = monotonic()
    logger.info("evolution claimed", extra=told)
    try:
        with tracer.start_as_current_span("evolution", record_exception=False) as span:
            span.set_attributes({f"ace.{name}": value for name, value in told.items()})
            yield
    finally:
        logger.info("evolution left", extra={**told, "took_ms": _since(begun)})
        request_id.reset(known)


class TracedLLM:
    """An LLM whose every call is a span and a log line.

    The engine calls from threads of its own: they get the id and the span of the job from here.
    """

    def __init__(self, llm: LLM, *, address: str) -> None:
        self._llm, self._address = llm, address
        self._job, self._request_id = context.get_current(), request_id.get()

    def complete(self, request: LLMRequest[Any]) -> LLMReply:
        """As the wrapped LLM's, errors included."""
        known, begun = request_id.set(self._request_id), monotonic()
        span = tracer.start_span(f"chat {request.model}", self._job, SpanKind.CLIENT)
        status, tokens = "answered", 0
        try:
            self._describe(span, request)
            reply = self._llm.complete(request)
            tokens = reply.usage.total_tokens
            _describe_reply(span, reply)
            return reply
        except LLMError as error:
            status = error.code
            span.set_attribute("error.type", error.code)
            span.set_status(StatusCode.ERROR)
            raise
        finally:
            span.end()
            told = {"model": request.model, "operation": request.operation, "status": status}
            logger.info("llm call", extra={**told, "tokens": tokens, "took_ms": _since(begun)})
            request_id.reset(known)

    def _describe(self, span: Span, request: LLMRequest[Any]) -> None:
        span.set_attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.request.model": request.model,
                "gen_ai.request.max_tokens": request.max_tokens,
                "gen_ai.output.type": "json",
                "server.address": self._address,
                "ace.operation": request.operation,
            }
        )
        if settings.OTEL_CAPTURE_CONTENT:
            span.set_attribute("gen_ai.input.messages", json.dumps(request.messages))


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


def _since(begun: float) -> int:
    """Milliseconds."""
    return round((monotonic() - begun) * 1000)
