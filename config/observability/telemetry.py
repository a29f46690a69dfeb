"""Errors to Sentry and spans over OTLP, both off until their address is set.

Neither contains texts of playbooks or outcomes.
"""

from typing import Any

from django.conf import settings

from core.http.request_id import request_id

SERVICE = "ace-platform"
KEPT_REQUEST_FIELDS = ("method",)


def start_telemetry() -> None:
    """Called once in each process, when Django is ready."""
    if settings.SENTRY_DSN:
        _start_sentry()
    if settings.OTEL_EXPORTER_OTLP_ENDPOINT:
        _start_tracing()


def _start_sentry() -> None:
    import sentry_sdk  # noqa: PLC0415 - half a second that only users of Sentry pay
    from sentry_sdk.integrations.logging import ignore_logger  # noqa: PLC0415 - as above

    # Its message is the Host header of a stranger, who could fill the quota with it.
    ignore_logger("django.security.DisallowedHost")
    sentry_sdk.init(
        dsn=settings.SENTRY_DSN,
        release=f"{SERVICE}@{settings.VERSION}",
        send_default_pii=False,
        include_local_variables=False,
        include_source_context=False,
        max_request_body_size="never",
        max_breadcrumbs=0,
        # None, not 0: with a rate, a caller's `sentry-trace` header could ask for spans.
        traces_sample_rate=None,
        before_send_transaction=lambda event, hint: None,
        before_send=scrub_event,
    )


def scrub_event(event: Any, hint: Any) -> Any:
    """The event with types, code locations and ids only.

    Messages of exceptions quote rows, log parameters quote user texts, headers and URLs contain
    keys and search terms.
    """
    for entry in (event.get("exception") or {}).get("values", []):
        entry["value"] = ""
        for frame in (entry.get("stacktrace") or {}).get("frames", []):
            frame.pop("vars", None)
    request = event.get("request") or {}
    event["request"] = {name: request[name] for name in KEPT_REQUEST_FIELDS if name in request}
    for name in ("breadcrumbs", "extra", "user", "modules", "threads"):
        event.pop(name, None)
    event["tags"] = {"request_id": request_id.get()}
    if "logentry" in event:
        event["logentry"] = {"message": event["logentry"].get("message", "")}
    return event


def _start_tracing() -> None:
    # These imports take about half a second, paid only where tracing is on.
    from opentelemetry import trace  # noqa: PLC0415 - see above
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    about = {"service.name": SERVICE, "service.version": settings.VERSION}
    provider = TracerProvider(resource=Resource.create(about))
    # Headers (a token of the collector) and the rest come from OTEL_EXPORTER_OTLP_*.
    base = settings.OTEL_EXPORTER_OTLP_ENDPOINT.rstrip("/")
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{base}/v1/traces")))
    trace.set_tracer_provider(provider)
