"""Success rates by version, and before against after a change: did it help?

It compares reported outcomes, so it shows that tasks went better, not why: easier tasks or a better
model look the same. A training on equal tasks, with a held-out part, proves more.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Count, F, Min, Q, Sum

from core.errors import Invalid
from evolution.evidence.intervals import RateChange, SuccessRate
from evolution.models import Outcome
from playbooks.models import Playbook, Version

MAX_LISTED_VERSIONS = 100
"""The newest versions that are listed; the comparison counts all of them."""


@dataclass(frozen=True)
class VersionCounts:
    """Outcomes under one version by status."""

    number: int
    success: int
    partial: int
    failure: int
    assumed: int
    cost_usd: Decimal | None = None
    priced_successes: int = 0

    @property
    def cost_per_success(self) -> Decimal | None:
        """US dollars; only tasks whose report names a cost count."""
        if self.cost_usd is None or not self.priced_successes:
            return None
        return round(self.cost_usd / self.priced_successes, 6)

    @property
    def tasks(self) -> int:
        return self.success + self.partial + self.failure

    @property
    def rate(self) -> SuccessRate:
        return SuccessRate(self.success, self.tasks)


@dataclass(frozen=True)
class VersionEvidence:
    """A version and its counts."""

    version: Version
    counted: VersionCounts


@dataclass(frozen=True)
class Evidence:
    """`before` are the tasks under versions older than `since`, `after` those from it on.

    `since` is None while no evolution has made a version; a side without a task is None.
    `assumed` counts tasks whose report did not say which version was read.
    """

    since: int | None
    before: SuccessRate | None
    after: SuccessRate | None
    assumed: int
    versions: Sequence[VersionEvidence]
    left_out: int

    @property
    def change(self) -> RateChange | None:
        """The difference, if both sides have tasks."""
        if self.before is None or self.after is None:
            return None
        return RateChange(self.before, self.after)


def playbook_evidence(
    *, playbook: Playbook, since: int | None = None, signal: str = ""
) -> Evidence:
    """The outcomes by version, newest first; compared at `since`, by default the first evolution.

    A training's own attempts do not count. `signal` filters by evidence source. Raises Invalid for
    an unknown version (or the first) and for an unknown signal.
    """
    if signal and signal not in Outcome.Signal.values:
        raise Invalid.field("signal", f"Use one of: {', '.join(Outcome.Signal.values)}.")
    if since is not None and not playbook.versions.filter(number=since, number__gt=1).exists():
        raise Invalid.field("since", "Send the number of a version of this playbook, from 2 on.")
    counted = _counted(playbook, signal)
    first = _first_evolved(playbook) if since is None else since
    return Evidence(
        since=first,
        before=_pooled(one for one in counted if first is None or one.number < first),
        after=_pooled(one for one in counted if first is not None and one.number >= first),
        assumed=sum(one.assumed for one in counted),
        versions=_listed(playbook, counted[:MAX_LISTED_VERSIONS]),
        left_out=max(0, len(counted) - MAX_LISTED_VERSIONS),
    )


def _first_evolved(playbook: Playbook) -> int | None:
    evolved = playbook.versions.filter(reason=Version.Reason.EVOLUTION)
    number: int | None = evolved.aggregate(first=Min("number"))["first"]
    return number


def _counted(playbook: Playbook, signal: str) -> list[VersionCounts]:
    """Counts of every version with outcomes, newest first, in one query."""
    rows = Outcome.objects.filter(playbook=playbook, job__training=None)
    if signal:
        rows = rows.filter(signal=signal)
    of = {status: Count("pk", filter=Q(status=status)) for status in Outcome.Status.values}
    of["assumed"] = Count("pk", filter=Q(version_assumed=True))
    priced = Q(status=Outcome.Status.SUCCESS, cost_usd__isnull=False)
    of["priced_successes"] = Count("pk", filter=priced)
    by_version = rows.order_by("-version__number").values(number=F("version__number"))
    counted: Any = by_version.annotate(**of, cost_usd=Sum("cost_usd"))
    return [VersionCounts(**row) for row in counted]


def _listed(playbook: Playbook, counted: Sequence[VersionCounts]) -> list[VersionEvidence]:
    shown = playbook.versions.defer("text").filter(number__in=[one.number for one in counted])
    of = {version.number: version for version in shown}
    return [VersionEvidence(version=of[one.number], counted=one) for one in counted]


def _pooled(counted: Iterable[VersionCounts]) -> SuccessRate | None:
    """The common rate of all; None without a task."""
    kept = list(counted)
    tasks = sum(one.tasks for one in kept)
    return SuccessRate(sum(one.success for one in kept), tasks) if tasks else None
