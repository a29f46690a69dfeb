"""Logs and traces of jobs and LLM calls: the request's id in every log line, and spans.

Spans follow OpenTelemetry's GenAI conventions and are exported only where configured
(config/observability/telemetry.py). Prompts and answers are in them only with OTEL_CAPTURE_CONTENT.
"""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

from django.conf import settings
from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind, StatusCode

from core.http.request_id import request_id
from evolution.engine.llm import (
    LLM,
    ChatRequest,
    LLMError,
    LLMReply,
    LLMRequest,
    StreamingLLM,
)
from evolution.models import EvolutionJob
from evolution.worker.claims import Claim
from evolution.worker.embeddings import Embedder

logger = logging.getLogger(__name__)
tracer = trace.get_tracer("ace.evolution")


@contextmanager
def job_context(claim: Claim) -> Iterator[None]:
    """Log and trace the block under the id of the request that triggered the job."""
    rows = EvolutionJob.objects.filter(pk=claim.job_id).values_list("correlation_id", flat=True)
    known = request_id.set(rows.first() or claim.job_id.hex)
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
        request_id.reset(known)


class _Traced:
    """A span and a log line for each call.

    Calls may be made on any thread: the request id and the parent span are kept here.
    """

    def __init__(self, *, address: str) -> None:
        self._address = address
        self._job, self._request_id = context.get_current(), request_id.get()

    @contextmanager
    def _chat_call(
        self, request: LLMRequest[Any] | ChatRequest, output: str
    ) -> Iterator[list[LLMReply]]:
        """One call; the caller puts its reply into the list."""
        replies = list[LLMReply]()
        with self._call("chat", request.model, request.operation) as (span, fields):
            span.set_attribute("gen_ai.request.max_tokens", request.max_tokens)
            span.set_attribute("gen_ai.output.type", output)
            if settings.OTEL_CAPTURE_CONTENT:
                span.set_attribute("gen_ai.input.messages", json.dumps(request.messages))
            yield replies
            _describe_reply(span, replies[0])
            fields["tokens"] = replies[0].usage.total_tokens

    @contextmanager
    def _call(
        self, name: str, model: str, operation: str
    ) -> Iterator[tuple[Span, dict[str, object]]]:
        """The span of one call, and further fields of its log line."""
        known, begun = request_id.set(self._request_id), monotonic()
        fields = dict[str, object]()
        span = tracer.start_span(f"{name} {model}", self._job, SpanKind.CLIENT)
        status = "answered"
        try:
            span.set_attributes(
                {
                    "gen_ai.operation.name": name,
                    "gen_ai.provider.name": "openai",
                    "gen_ai.request.model": model,
                    "server.address": self._address,
                    "ace.operation": operation,
                    "ace.request_id": self._request_id,
                }
            )
            yield span, fields
        except LLMError as error:
            status = error.code
            span.set_attribute("error.type", error.code)
            span.set_status(StatusCode.ERROR)
            raise
        finally:
            span.end()
            call = {"model": model, "operation": operation, "status": status}
            took = {"took_ms": _elapsed_ms(begun)}
            logger.info("llm call", extra={"tokens": 0, **fields, **call, **took})
            request_id.reset(known)


class TracedLLM(_Traced):
    """An LLM whose calls are logged and traced."""

    def __init__(self, llm: LLM, *, address: str) -> None:
        super().__init__(address=address)
        self._llm = llm

    def complete(self, request: LLMRequest[Any]) -> LLMReply:
        """As the wrapped LLM's, errors included."""
        with self._chat_call(request, "json") as replies:
            replies.append(self._llm.complete(request))
        return replies[0]


class TracedChat(_Traced):
    """The same for streamed answers."""

    def __init__(self, llm: StreamingLLM, *, address: str) -> None:
        super().__init__(address=address)
        self._llm = llm

    def chat(self, request: ChatRequest, on_text: Callable[[str], None]) -> LLMReply:
        with self._chat_call(request, "text") as replies:
            replies.append(self._llm.chat(request, on_text))
        return replies[0]


class TracedEmbedder(_Traced):
    """The same for embeddings; the texts are in no span."""

    def __init__(self, embedder: Embedder, *, address: str) -> None:
        super().__init__(address=address)
        self._embedder, self.model = embedder, embedder.model

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        with self._call("embeddings", self.model, "embed") as (span, _):
            span.set_attribute("ace.texts", len(texts))
            vectors = self._embedder.embed(texts)
            span.set_attribute("gen_ai.embeddings.dimension.count", len(vectors[0]))
        return vectors


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
