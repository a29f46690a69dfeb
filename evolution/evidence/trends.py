"""Outcomes by day: success over time, for charts, sparklines and the change of a period."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from math import hypot
from typing import Any
from uuid import UUID

from django.db.models import F, Sum
from django.utils import timezone

from core.charts import BarChart, TrendChart, draw_bars, draw_sparkline, draw_trend
from evolution.models import OutcomeTally
from playbooks.trial_statistics import Counts

DAYS, BUCKET = 60, 4
"""Days that are looked at, and days in one point of the chart."""
SUMS = {"won": Sum("success"), "others": Sum(F("partial") + F("failure"))}


@dataclass(frozen=True)
class Change:
    """The step from one success rate to another."""

    before: Counts
    after: Counts

    @property
    def difference(self) -> float:
        """-1 to 1; positive where the later rate is higher."""
        return self.after.share - self.before.share

    @property
    def may_be_chance(self) -> bool:
        """Whether the difference's 95 % interval has 0 in it.

        R. G. Newcombe, Statistics in Medicine 17 (1998), method 10.
        """
        a, b = self.after, self.before
        low = self.difference - hypot(a.share - a.low, b.high - b.share)
        high = self.difference + hypot(a.high - a.share, b.share - b.low)
        return low <= 0 <= high


@dataclass(frozen=True)
class Trend:
    """The last DAYS days: `counts` of each day that has tasks."""

    first: date
    counts: Mapping[date, Counts]

    @property
    def days(self) -> list[date]:
        return [self.first + timedelta(days=n) for n in range(DAYS)]

    def rate(self, start: int, end: int) -> Counts | None:
        """The success rate of the days from `start` up to `end`; None without a task."""
        found = sum((self.counts.get(day, Counts()) for day in self.days[start:end]), Counts())
        return found if found.tasks else None

    @cached_property
    def rates(self) -> list[tuple[date, Counts | None]]:
        """The rate of every BUCKET days, oldest first."""
        return [(self.days[n], self.rate(n, n + BUCKET)) for n in range(0, DAYS, BUCKET)]

    @property
    def recent(self) -> Counts | None:
        """The rate of the second half."""
        return self.rate(DAYS // 2, DAYS)

    @property
    def change(self) -> Change | None:
        """The second half against the first."""
        before, after = self.rate(0, DAYS // 2), self.recent
        return Change(before, after) if before and after else None

    @property
    def sparkline(self) -> str:
        """The SVG path of the rates."""
        return draw_sparkline([rate.share if rate else None for _, rate in self.rates])

    def chart(self, versions: Mapping[int, date]) -> TrendChart:
        """Success over time; `versions` are marked at their days."""
        marks = {number: (day - self.first).days / DAYS for number, day in versions.items()}
        return draw_trend(self.rates, marks)

    @property
    def bars(self) -> BarChart:
        """Outcomes per day."""
        return draw_bars({day: counts.tasks for day, counts in self.counts.items()}, self.days)


def trends_of(playbook_ids: Collection[UUID]) -> dict[UUID, Trend]:
    """The trend of each playbook, from tallies; one query."""
    first = _first_day()
    found: dict[UUID, dict[date, Counts]] = {pk: {} for pk in playbook_ids}
    rows = OutcomeTally.objects.filter(playbook__in=playbook_ids, day__gte=first)
    for playbook, day, won, others in rows.values_list("playbook_id", "day").annotate(**SUMS):
        found[playbook][day] = Counts(won + others, won)
    return {pk: Trend(first, counts) for pk, counts in found.items()}


def joint_trend(**of: Any) -> Trend:
    """The trend of all playbooks that the tallies are filtered by; one query."""
    first = _first_day()
    sums = OutcomeTally.objects.filter(day__gte=first, **of).values_list("day").annotate(**SUMS)
    return Trend(first, {day: Counts(won + others, won) for day, won, others in sums})


def _first_day() -> date:
    return timezone.now().date() - timedelta(days=DAYS - 1)
