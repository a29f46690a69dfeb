"""The figures at /metrics, for Prometheus.

What the loop did is read from the rows at each scrape: the same numbers from every process and
host, none lost with one. How long requests took is counted by the processes of one host, in files
that they share in a folder.
"""

import os
from collections.abc import Iterator

from django.conf import settings
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import REGISTRY, Collector

from config.observability.metrics_collectors import collect_metrics

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

HTTP_SECONDS = Histogram(
    "ace_http_request_seconds",
    "Time to answer a page or a REST call, by its route",
    ["method", "route", "status"],
    buckets=BUCKETS,
)


class DatabaseCollector(Collector):
    """The figures that stand in the database."""

    def collect(self) -> Iterator[Metric]:
        yield from collect_metrics()


def render_metrics(*, rows: bool = True) -> bytes:
    """The figures in Prometheus' text format; without `rows` only what the processes counted."""
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
    """Count one answer, where somebody reads the figures."""
    if settings.METRICS_TOKEN:
        method = method if method in METHODS else "other"
        HTTP_SECONDS.labels(method, route, f"{status // 100}xx").observe(seconds)
