"""Evidence from tallies, without reading a text: by version, and by bullet in the ledger.

It is history, not proof: a bullet that is cited on hard tasks looks harmful. Trials prove.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from django.db.models import Count, F, Max, Q, Sum

from billing.models import UsageRecord
from core.errors import Invalid
from evolution.models import FIGURES, CitationTally, EvolutionJob, Outcome, OutcomeTally
from playbooks.document.text import number_of
from playbooks.models import Bullet, Delta, Playbook, Trial
from playbooks.trial_statistics import Counts

MAX_LISTED_VERSIONS = 100
PSEUDO_TASKS = 10
"""Tasks at the playbook's own rate that each rate is mixed with: 1 of 1 is not 100 %."""
SORTS = (
    *("bullet", "served", "cited", "helpful", "harmful"),
    *("rate_cited", "rate_not_cited", "difference"),
)
DEFAULT_SORT = "-cited"


@dataclass(frozen=True)
class LedgerRow:
    """An active bullet: `served` are the tasks of its versions, `cited` those that named it.

    `origin` and `since` are the reason and the number of the version that introduced it. Rates
    are 0 to 1 and shrunk; None without a task.
    """

    bullet: Bullet
    origin: str
    since: int
    served: Counts
    cited: Counts
    rate_cited: float | None
    rate_not_cited: float | None

    @property
    def difference(self) -> float | None:
        """-1 to 1; positive where tasks that cited it succeeded more often."""
        if self.rate_cited is None or self.rate_not_cited is None:
            return None
        return self.rate_cited - self.rate_not_cited

    def order_of(self, name: str) -> float | None:
        """The figure to sort by, one of SORTS; None comes last."""
        if name == "bullet":
            return number_of(self.bullet.public_id)
        found = getattr(self.bullet if name in {"helpful", "harmful"} else self, name)
        return found.tasks if isinstance(found, Counts) else found


def bullet_ledger(*, playbook: Playbook, sort: str = "") -> list[LedgerRow]:
    """The active bullets, the most cited first; `sort` is one of SORTS, `-` before it: descending.

    Raises Invalid for another word.
    """
    sort = sort or DEFAULT_SORT
    name = sort.removeprefix("-")
    if name not in SORTS:
        raise Invalid.field("sort", f"Use one of: {', '.join(SORTS)}; - before it: descending.")
    rows = sorted(_rows(playbook), key=lambda row: number_of(row.bullet.public_id))
    known = [row for row in rows if row.order_of(name) is not None]
    known.sort(key=lambda row: row.order_of(name) or 0, reverse=sort.startswith("-"))
    return [*known, *(row for row in rows if row.order_of(name) is None)]


def _rows(playbook: Playbook) -> list[LedgerRow]:
    trials = list(playbook.trials.exclude(kind=Trial.Kind.VERSION).with_versions())
    tasks = _tasks_by_version(playbook)
    # Readings of a control arm had no bullet, or not the one on trial.
    for trial in trials:
        number = trial.stable_version.number
        if trial.kind == Trial.Kind.BARE and number in tasks:
            tasks[number] -= trial.tally.stable
    served, origins = _lifetimes(playbook, tasks)
    for trial in trials:
        if trial.bullet_id in served:
            served[trial.bullet_id] -= trial.tally.stable
    total = sum(tasks.values(), Counts())
    base = total.successes / total.tasks if total.tasks else 0.0
    tallies = CitationTally.objects.filter(playbook=playbook).values_list(
        "bullet_id", "tasks", "successes"
    )
    cited = {name: Counts(count, successes) for name, count, successes in tallies}

    def row_of(bullet: Bullet) -> LedgerRow:
        name = bullet.public_id
        with_it, named = served.get(name, Counts()), cited.get(name, Counts())
        rates = _shrunk(named, base), _shrunk(with_it - named, base)
        return LedgerRow(bullet, *origins[name], with_it, named, *rates)

    return [row_of(bullet) for bullet in playbook.bullets.active().defer("metadata")]


def _shrunk(counts: Counts, base: float) -> float | None:
    if not counts.tasks:
        return None
    return (counts.successes + PSEUDO_TASKS * base) / (counts.tasks + PSEUDO_TASKS)


def _tasks_by_version(playbook: Playbook) -> dict[int, Counts]:
    rows = OutcomeTally.objects.filter(playbook=playbook).values_list("version__number")
    sums = rows.annotate(won=Sum("success"), others=Sum(F("partial") + F("failure")))
    return {number: Counts(success + others, success) for number, success, others in sums}


def _lifetimes(
    playbook: Playbook, tasks: Mapping[int, Counts]
) -> tuple[dict[str, Counts], dict[str, tuple[str, int]]]:
    """The tasks while each bullet was active; reason and number of the version that brought it."""
    numbers = sorted(tasks)
    sums = list(accumulate((tasks[number] for number in numbers), initial=Counts()))
    served: dict[str, Counts] = {}
    begun: dict[str, Counts] = {}
    origins: dict[str, tuple[str, int]] = {}
    deltas = playbook.deltas.applied().exclude(version=None).exclude(type=Delta.Type.TAG)
    columns = ("bullet_public_id", "version__reason", "version__number", "after__status")
    rows = deltas.order_by("version__number", "index").values_list(*columns)
    for name, reason, number, status in rows:
        origins.setdefault(name, (reason, number))
        before = sums[bisect_left(numbers, number)]
        if status == Bullet.Status.ACTIVE:
            begun.setdefault(name, before)
        elif name in begun:
            served[name] = served.get(name, Counts()) + (before - begun.pop(name))
    for name, before in begun.items():
        served[name] = served.get(name, Counts()) + (sums[-1] - before)
    return served, origins


@dataclass(frozen=True)
class Evidence:
    """The newest versions with tasks, newest first; `left_out` older ones have tasks too.

    Each is a tally of all days with `evolution_cost_usd`, what the platform spent on the evolution
    that made it; None: no call of a model, or none with a known price. `assumed` counts tasks whose
    report did not say which version was read.
    """

    versions: Sequence[OutcomeTally]
    assumed: int
    left_out: int


def playbook_evidence(*, playbook: Playbook, signal: str = "") -> Evidence:
    """The outcomes by version, a training's own attempts left out.

    `signal` filters by evidence source; Invalid for an unknown one.
    """
    if signal and signal not in Outcome.Signal.values:
        raise Invalid.field("signal", f"Use one of: {', '.join(Outcome.Signal.values)}.")
    rows = OutcomeTally.objects.filter(playbook=playbook)
    rows = rows.filter(signal=signal) if signal else rows
    by_version: Any = rows.order_by("-version__number").values("version_id", "version__number")
    sums = list(by_version.annotate(**{f"{name}_sum": Sum(name) for name in FIGURES}))
    shown = sums[:MAX_LISTED_VERSIONS]
    versions = playbook.versions.defer("text").in_bulk([row["version_id"] for row in shown])
    jobs = [version.job_id for version in versions.values() if version.job_id]
    calls = UsageRecord.objects.filter(job_id__in=jobs).order_by().values_list("job_id")
    spent = dict(calls.annotate(Sum("cost_usd")))
    tallies: list[Any] = []
    for row in shown:
        figures = {name: row[f"{name}_sum"] for name in FIGURES}
        tally: Any = OutcomeTally(version=versions[row["version_id"]], **figures)
        tally.evolution_cost_usd = spent.get(tally.version.job_id)
        tallies.append(tally)
    assumed = sum(row["assumed_sum"] for row in sums)
    return Evidence(tallies, assumed, left_out=len(sums) - len(shown))


def playbook_metrics(*, playbook: Playbook) -> dict[str, Any]:
    """Metrics of a playbook: outcomes by status, success rate (0–1 or None), votes, evolutions.

    A training's own attempts at its samples do not count as outcomes.
    """
    outcomes = _outcome_metrics(playbook)
    jobs = EvolutionJob.objects.filter(playbook=playbook).aggregate(
        total=Count("id"),
        last_completed_at=Max("completed_at", filter=Q(status="completed")),
        **{status: Count("id", filter=Q(status=status)) for status in EvolutionJob.Status.values},
    )
    bullets = playbook.bullets.filter(status="active").aggregate(
        active=Count("id"), helpful=Sum("helpful", default=0), harmful=Sum("harmful", default=0)
    )
    rate = outcomes["success"] / outcomes["total"] if outcomes["total"] else None
    version = playbook.current_version
    return {
        "outcomes": outcomes | {"success_rate": rate},
        "bullets": bullets,
        "evolutions": jobs,
        "version": version.number if version else None,
        "token_count": version.token_count if version else 0,
    }


def _outcome_metrics(playbook: Playbook) -> dict[str, int]:
    """Outcomes by status and state, from tallies and indexes."""
    sums = {status: Sum(status, default=0) for status in Outcome.Status.values}
    by_status = OutcomeTally.objects.filter(playbook=playbook).aggregate(**sums)
    set_aside = Outcome.objects.filter(playbook=playbook).exclude(set_aside_reason="")
    return {
        "total": sum(by_status.values()),
        "pending": Outcome.objects.pending().filter(playbook=playbook).count(),
        "set_aside": set_aside.filter(job__training=None).count(),
        **by_status,
    }
