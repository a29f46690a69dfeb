"""Prometheus metrics of outcomes, evolutions, model calls and workers, from SQL aggregates."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, F, Max, Min, Q, Sum
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from billing.models import BillingAccount, StripeEvent, UsageRecord
from billing.stripe.sync import MONEY_BACK
from core.clock import database_now
from evolution.models import EvolutionJob, Outcome, ProviderCircuit, WorkerHeartbeat
from playbooks.models import Bullet, Delta, ReviewItem

DURATION_BUCKETS = (1, 5, 15, 30, 60, 120, 300, 900)
"""Bounds in seconds of the histogram of evolutions."""


def collect_metrics() -> Iterator[Metric]:
    """All metric families, in the order of docs/OPERATIONS.md."""
    yield from _outcomes()
    yield from _evolutions()
    yield _durations()
    yield from _jobs()
    yield from _usage()
    yield from _playbooks()
    yield from _workers()
    yield from _payments()


def _counter(
    name: str, text: str, labels: list[str], rows: Any, fields: list[str] | None = None
) -> CounterMetricFamily:
    """The number of rows for each combination of the fields' values, by default of `labels`."""
    family, fields = CounterMetricFamily(name, text, labels=labels), fields or labels
    for row in rows.order_by().values(*fields).annotate(number=Count("pk")):
        family.add_metric([str(row[name] or "") for name in fields], row["number"])
    return family


def _outcomes() -> Iterator[Metric]:
    text = "Outcomes reported, by result and signal"
    yield _counter("ace_outcomes", text, ["status", "signal"], Outcome.objects.all())
    waiting = Outcome.objects.pending().count()
    yield GaugeMetricFamily("ace_outcomes_pending", "Outcomes waiting for an evolution", waiting)
    aside = Outcome.objects.exclude(set_aside_reason="").count()
    yield GaugeMetricFamily("ace_outcomes_set_aside", "Outcomes without a usable lesson", aside)


def _evolutions() -> Iterator[Metric]:
    text = "Finished evolutions, by result and reason of failure"
    labels, fields = ["result", "reason", "trigger"], ["status", "error_code", "trigger"]
    ended = EvolutionJob.objects.filter(status__in=("completed", "failed", "cancelled"))
    results = _counter("ace_evolutions", text, labels, ended, fields)
    # So that the first failure is an increase: Prometheus does not count from nothing.
    results.add_metric(["failed", "", ""], 0)
    yield results
    triggered = EvolutionJob.objects.all()
    text = "Evolutions triggered, by what triggered them"
    yield _counter("ace_evolutions_triggered", text, ["trigger"], triggered)
    lost = EvolutionJob.objects.aggregate(lost=Sum("rescues", default=0))["lost"]
    yield CounterMetricFamily("ace_lease_expiries", "Leases of workers that died", lost)


def _durations() -> Metric:
    """Durations of completed evolutions, from their first claim."""
    done = EvolutionJob.objects.filter(status="completed", started_at__isnull=False)
    within = {
        f"to_{bound}": Count(
            "pk", filter=Q(completed_at__lte=F("started_at") + timedelta(seconds=bound))
        )
        for bound in DURATION_BUCKETS
    }
    spent = Sum(F("completed_at") - F("started_at"))
    found = done.aggregate(number=Count("pk"), spent=spent, **within)
    buckets = [(str(float(bound)), float(found[f"to_{bound}"])) for bound in DURATION_BUCKETS]
    total = found["spent"].total_seconds() if found["spent"] else 0.0
    family = HistogramMetricFamily("ace_evolution_seconds", "Duration of evolutions")
    family.add_metric([], [*buckets, ("+Inf", float(found["number"]))], sum_value=total)
    return family


def _jobs() -> Iterator[Metric]:
    now = database_now()
    active = EvolutionJob.objects.active()
    states = GaugeMetricFamily("ace_jobs", "Active jobs, by state", labels=["state"])
    for state in ("queue", "waiting", "running", "stuck"):
        states.add_metric([state], active.in_state(state, now).count())
    yield states
    oldest = active.due(now).aggregate(first=Min("created_at"))["first"]
    age = (now - oldest).total_seconds() if oldest else 0
    yield GaugeMetricFamily("ace_oldest_job_seconds", "Age of the oldest job that is due", age)


def _usage() -> Iterator[Metric]:
    labels = ["model", "operation", "status"]
    calls = UsageRecord.objects.all()
    yield _counter("ace_llm_calls", "Model calls, retries included", labels, calls)
    tokens = CounterMetricFamily("ace_llm_tokens", "Tokens", labels=["model", "kind"])
    cost = CounterMetricFamily(
        "ace_llm_cost_usd", "Cost of calls with a known price", labels=["model"]
    )
    unknown = CounterMetricFamily(
        "ace_llm_unpriced_calls", "Calls without a known price", labels=["model"]
    )
    for row in (
        UsageRecord.objects.order_by()
        .values("model")
        .annotate(
            prompt=Sum("prompt_tokens"),
            completion=Sum("completion_tokens"),
            cost=Sum("cost_usd", default=Decimal(0)),
            unpriced=Count("pk", filter=Q(cost_usd=None) & ~Q(status="started")),
        )
    ):
        model = [row["model"]]
        tokens.add_metric([*model, "prompt"], row["prompt"])
        tokens.add_metric([*model, "completion"], row["completion"])
        cost.add_metric(model, float(row["cost"]))
        unknown.add_metric(model, row["unpriced"])
    yield from (tokens, cost, unknown)


def _playbooks() -> Iterator[Metric]:
    text = "Proposed edits, by result"
    yield _counter("ace_deltas", text, ["type", "status"], Delta.objects.all())
    active = Bullet.objects.active()
    yield GaugeMetricFamily("ace_bullets", "Active bullets", active.count())
    harmful = active.filter(harmful__gt=F("helpful")).count()
    yield GaugeMetricFamily(
        "ace_bullets_harmful", "Active bullets with more harmful votes", harmful
    )
    held = ReviewItem.objects.pending().count()
    yield GaugeMetricFamily("ace_pending_reviews", "Machine-written texts waiting for review", held)


def _workers() -> Iterator[Metric]:
    last = WorkerHeartbeat.objects.aggregate(last=Max("last_seen_at"))["last"]
    age = (database_now() - last).total_seconds() if last else float("inf")
    yield GaugeMetricFamily("ace_worker_heartbeat_age_seconds", "Since the last heartbeat", age)
    circuits = GaugeMetricFamily(
        "ace_provider_circuit_open",
        "1 while no call is made to the provider, by whose key",
        labels=["provider", "code", "key"],
    )
    for circuit in ProviderCircuit.objects.open(database_now()):
        whose = "user" if circuit.is_user_key else "operator"
        circuits.add_metric([circuit.label, circuit.code, whose], 1.0)
    yield circuits


def _payments() -> Iterator[Metric]:
    late = BillingAccount.objects.unconfirmed(database_now()).count()
    text = "Paid plans whose next period Stripe has not confirmed for two days"
    yield GaugeMetricFamily("ace_unconfirmed_plans", text, late)
    events = GaugeMetricFamily(
        "ace_stripe_events", "Stripe's events of the last 30 days", labels=["type", "result"]
    )
    known = {(kind, "ignored"): 0 for kind in sorted(MONEY_BACK)}
    counted = StripeEvent.objects.order_by().values_list("type", "result")
    for kind, result, number in counted.annotate(number=Count("pk")):
        known[kind, result] = number
    for labels, number in known.items():
        events.add_metric(labels, number)
    yield events
