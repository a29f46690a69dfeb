"""What leaves the process for people who operate it: errors to Sentry, spans over OTLP.

Both are off until their address is set, and both leave without texts of playbooks and outcomes.
"""

from typing import Any

from django.conf import settings

SERVICE = "ace-platform"
KEPT_REQUEST_FIELDS = ("method",)


def start_telemetry() -> None:
    """Called once in each process, when Django is ready."""
    if settings.SENTRY_DSN:
        _start_sentry()
    if settings.OTEL_EXPORTER_OTLP_ENDPOINT:
        _start_tracing()


def _start_sentry() -> None:
    import sentry_sdk  # noqa: PLC0415 - half a second that only those pay who use it

    sentry_sdk.init(
        dsn=settings.SENTRY_DSN,
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
    """The event with types, places and ids only.

    Messages of exceptions quote rows, log parameters quote what was logged, headers and addresses
    carry keys and search words.
    """
    for entry in (event.get("exception") or {}).get("values", []):
        entry["value"] = ""
        for frame in (entry.get("stacktrace") or {}).get("frames", []):
            frame.pop("vars", None)
    request = event.get("request") or {}
    event["request"] = {name: request[name] for name in KEPT_REQUEST_FIELDS if name in request}
    for name in ("breadcrumbs", "extra", "user", "modules", "threads"):
        event.pop(name, None)
    if "logentry" in event:
        event["logentry"] = {"message": event["logentry"].get("message", "")}
    return event


def _start_tracing() -> None:
    # These imports cost about half a second and are paid only where spans are wanted.
    from opentelemetry import trace  # noqa: PLC0415 - see above
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    provider = TracerProvider(resource=Resource.create({"service.name": SERVICE}))
    # Headers (a token of the collector) and the rest come from OTEL_EXPORTER_OTLP_*.
    base = settings.OTEL_EXPORTER_OTLP_ENDPOINT.rstrip("/")
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{base}/v1/traces")))
    trace.set_tracer_provider(provider)
