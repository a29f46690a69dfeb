"""Logs and traces of jobs and LLM calls: the request's id in every log line, and spans.

Spans follow OpenTelemetry's GenAI conventions and are exported only where configured
(config/observability/telemetry.py). Prompts and answers are in them only with OTEL_CAPTURE_CONTENT.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from django.conf import settings
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode

from core.http.request_id import request_id
from evolution.engine.llm import ChatRequest, LLMReply, LLMRequest
from evolution.worker.claims import Claim

logger = logging.getLogger(__name__)
tracer = trace.get_tracer("ace.evolution")


@contextmanager
def job_context(claim: Claim) -> Iterator[None]:
    """Log and trace the block."""
    fields = {"job_id": str(claim.job_id), "playbook_id": str(claim.playbook_id)}
    begun = monotonic()
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
        self._request, self._known_id, self._begun = request, known_id, monotonic()
        name = "embeddings" if request.operation == "embed" else "chat"
        self._span = tracer.start_span(f"{name} {request.model}", parent, SpanKind.CLIENT)
        self._span.set_attributes(
            {
                "gen_ai.operation.name": name,
                "gen_ai.provider.name": "openai",
                "gen_ai.request.model": request.model,
                "server.address": address,
                "ace.operation": request.operation,
                "ace.request_id": known_id,
            }
        )
        if name == "embeddings":
            self._span.set_attribute("ace.texts", len(request.messages))
            return
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
    return round((monotonic() - begun) * 1000)
