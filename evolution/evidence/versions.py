"""Success rates and costs by version, from tallies: history, not proof. Trials prove."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Sum

from billing.models import UsageRecord
from core.errors import Invalid
from evolution.models import FIGURES, Outcome, OutcomeTally
from playbooks.models import Playbook, Version
from playbooks.trial_statistics import Counts

MAX_LISTED_VERSIONS = 100


@dataclass(frozen=True)
class VersionEvidence:
    """Outcomes under one version; `cost_usd` sums the reports that name a cost (`priced`).

    `evolution_cost_usd` is what the platform spent on the evolution that made the version; None:
    no call of a model, or none with a known price.
    """

    version: Version
    evolution_cost_usd: Decimal | None
    success: int
    partial: int
    failure: int
    assumed: int
    priced: int
    priced_successes: int
    cost_usd: Decimal

    @property
    def tasks(self) -> int:
        return self.success + self.partial + self.failure

    @property
    def rate(self) -> Counts:
        return Counts(self.tasks, self.success)

    @property
    def reported_cost(self) -> Decimal | None:
        """US dollars; None if no report names a cost."""
        return self.cost_usd if self.priced else None

    @property
    def cost_per_success(self) -> Decimal | None:
        """US dollars; only tasks whose report names a cost count."""
        return round(self.cost_usd / self.priced_successes, 6) if self.priced_successes else None


@dataclass(frozen=True)
class Evidence:
    """The newest versions with tasks, newest first; `left_out` older ones have tasks too.

    `assumed` counts tasks whose report did not say which version was read.
    """

    versions: Sequence[VersionEvidence]
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
    shown = [row["version_id"] for row in sums[:MAX_LISTED_VERSIONS]]
    versions = playbook.versions.defer("text").in_bulk(shown)
    spent = _evolution_costs(version.job_id for version in versions.values() if version.job_id)
    return Evidence(
        versions=[
            VersionEvidence(
                version=versions[row["version_id"]],
                evolution_cost_usd=spent.get(versions[row["version_id"]].job_id),
                **{name: row[f"{name}_sum"] for name in FIGURES},
            )
            for row in sums[:MAX_LISTED_VERSIONS]
        ],
        assumed=sum(row["assumed_sum"] for row in sums),
        left_out=max(0, len(sums) - MAX_LISTED_VERSIONS),
    )


def _evolution_costs(jobs: Any) -> dict[UUID | None, Decimal | None]:
    calls = UsageRecord.objects.filter(job_id__in=list(jobs)).order_by()
    return dict(calls.values_list("job_id").annotate(Sum("cost_usd")))
