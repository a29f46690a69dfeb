"""Spans and errors leave the process without anybody's text."""

import json
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
import sentry_sdk
import sentry_sdk.integrations.logging as logging_integration
from opentelemetry import trace
from opentelemetry.context import get_current
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pytest_django import Settings
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from config.observability import telemetry
from config.observability.telemetry import scrub_event
from core.http.request_id import request_id
from evolution.engine.llm import ChatRequest
from evolution.models import EvolutionJob
from evolution.worker import usage_ledger
from evolution.worker.tasks import run_evolution
from tests.config.observability.conftest import CANARY
from tests.harness.fake_llm.model import FakeLLM

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What would go to the collector: the exporter is the network's edge."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(usage_ledger, "tracer", provider.get_tracer("test"))
    yield exporter
    provider.shutdown()


def output(spans: InMemorySpanExporter) -> dict[str, list[ReadableSpan]]:
    found: dict[str, list[ReadableSpan]] = {}
    for span in spans.get_finished_spans():
        found.setdefault(span.name, []).append(span)
    return found


def test_each_call_is_a_span_of_its_job(
    asked: EvolutionJob, model: FakeLLM, spans: InMemorySpanExporter
) -> None:
    run_evolution(str(asked.pk))
    found = output(spans)
    (job,), calls = found["evolution"], found["chat gpt-4o-mini"]
    assert len(calls) == model.count() == 2
    assert job.context is not None
    assert {call.parent and call.parent.span_id for call in calls} == {job.context.span_id}
    attributes = dict(calls[0].attributes or {})
    assert attributes["gen_ai.operation.name"] == "chat"
    assert {s.attributes and s.attributes["ace.request_id"] for s in (job, *calls)} == {
        asked.correlation_id
    }
    assert int(str(attributes["gen_ai.usage.input_tokens"])) > 0


def test_content_stays_at_home_unless_asked(
    asked: EvolutionJob, model: FakeLLM, spans: InMemorySpanExporter
) -> None:
    run_evolution(str(asked.pk))
    assert CANARY not in json.dumps([span.to_json() for span in spans.get_finished_spans()])


def test_content_goes_along_when_asked(
    asked: EvolutionJob, model: FakeLLM, spans: InMemorySpanExporter, settings: Settings
) -> None:
    settings.OTEL_CAPTURE_CONTENT = True
    run_evolution(str(asked.pk))
    assert CANARY in json.dumps([span.to_json() for span in spans.get_finished_spans()])


def test_a_failed_call_says_its_code(
    asked: EvolutionJob, model: FakeLLM, spans: InMemorySpanExporter
) -> None:
    model.fail("reflector", status=500)
    run_evolution(str(asked.pk))
    failed = [s for s in output(spans)["chat gpt-4o-mini"] if s.status.status_code.name == "ERROR"]
    assert dict(failed[0].attributes or {})["error.type"] == "provider_fault"


def trace_of_call(request: ChatRequest) -> usage_ledger.CallTrace:
    parent = get_current()
    return usage_ledger.CallTrace(request, address="models.example", parent=parent, known_id="r")


def test_an_event_for_sentry_keeps_types_places_and_ids_only() -> None:
    event: dict[str, Any] = {
        "exception": {
            "values": [
                {
                    "type": "DataError",
                    "value": CANARY,
                    "stacktrace": {"frames": [{"lineno": 3, "vars": {"x": CANARY}}]},
                }
            ]
        },
        "request": {"method": "POST", "url": CANARY, "headers": {"Authorization": CANARY}},
        "breadcrumbs": {"values": [CANARY]},
        "extra": {"x": CANARY},
        "user": {"email": CANARY},
        "logentry": {"message": "tool %s failed", "params": [CANARY], "formatted": CANARY},
    }
    kept = scrub_event(event, {})
    assert CANARY not in json.dumps(kept)
    assert kept["exception"]["values"][0]["type"] == "DataError"
    assert kept["request"] == {"method": "POST"}
    assert kept["tags"] == {"request_id": request_id.get()}


class Posted(Transport):
    """The network's edge: what would have gone to Sentry."""

    items: ClassVar[list[str | None]] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        self.items.extend(item.type for item in envelope.items)


def test_no_caller_can_ask_for_a_trace_to_sentry(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """A header `sentry-trace: …-1` counts for more than a rate of 0."""
    settings.SENTRY_DSN = "https://key@sentry.example/1"
    given: dict[str, Any] = {"transport": Posted, "default_integrations": False}
    monkeypatch.setattr(sentry_sdk, "init", lambda **options: given.update(options))
    telemetry._start_sentry()
    given.pop("send_default_pii")  # says at the start that it is deprecated
    with sentry_sdk.isolation_scope() as scope:
        scope.set_client(sentry_sdk.Client(**given))
        header = {"sentry-trace": f"{'a' * 32}-{'b' * 16}-1"}
        with sentry_sdk.start_transaction(sentry_sdk.continue_trace(header, name=CANARY)):
            pass
    assert Posted.items == []
    assert given["release"] == f"ace-platform@{settings.VERSION}"
    assert "django.security.DisallowedHost" in logging_integration._IGNORED_LOGGERS


def test_nothing_is_sent_where_no_address_is_set() -> None:
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
