"""The metrics at /metrics, for Prometheus.

Metrics of outcomes, jobs and usage are read from the database at each scrape, so every host returns
the same numbers. Request durations are counted per host, in files that its processes share.
"""

import os
from collections.abc import Iterator

from django.conf import settings
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import REGISTRY, Collector

from config.observability.metrics_collectors import collect_metrics
from config.observability.monotonic_counters import keep_monotonic

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

HTTP_SECONDS = Histogram(
    "ace_http_request_seconds",
    "Time to answer a page or a REST call, by its route",
    ["method", "route", "status"],
    buckets=BUCKETS,
)


class DatabaseCollector(Collector):
    """The metrics that are read from the database."""

    def collect(self) -> Iterator[Metric]:
        yield from keep_monotonic(collect_metrics())


def render_metrics(*, rows: bool = True) -> bytes:
    """The metrics in Prometheus' text format; without `rows` only what the processes counted."""
    registry = CollectorRegistry()
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # the library's own
    else:
        registry = REGISTRY
    text = generate_latest(registry)
    if rows:
        of_rows = CollectorRegistry()
        of_rows.register(DatabaseCollector())
        text += generate_latest(of_rows)
    return text


def observe_request(method: str, route: str, status: int, seconds: float) -> None:
    """Record the duration of one request, if metrics are enabled."""
    if settings.METRICS_TOKEN:
        method = method if method in METHODS else "other"
        HTTP_SECONDS.labels(method, route, f"{status // 100}xx").observe(seconds)
