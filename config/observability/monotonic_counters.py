"""Counters read from rows that never fall when rows are deleted.

Prometheus takes a falling counter for a restart and counts all that is left as new: erasing an
account moved its whole history into the last minute. Each scrape therefore compares with the one
before and adds what has disappeared. Rejected: counting at every deletion, which the next cascade
forgets. Rows that came and went between two scrapes are not counted.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress

from django.db import DatabaseError
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.samples import Sample

from core.models import CounterTotals


def keep_monotonic(families: Iterable[Metric]) -> Iterator[Metric]:
    """The same families; samples of counters and histograms include deleted rows."""
    kept = {totals.name: totals for totals in CounterTotals.objects.all()}
    changed = []
    for family in families:
        if isinstance(family, CounterMetricFamily | HistogramMetricFamily):
            totals = kept.get(family.name) or CounterTotals(name=family.name)
            if _add_removed(family, totals):
                changed.append(totals)
        yield family
    # Of two scrapes at once the later one wins; they have seen the same rows. A full disk must not
    # hide the figures that tell of it.
    with suppress(DatabaseError):
        CounterTotals.objects.bulk_create(
            changed,
            update_conflicts=True,
            unique_fields=["name"],
            update_fields=["counted", "removed"],
        )


def _add_removed(family: Metric, totals: CounterTotals) -> bool:
    """Add the removed rows to each sample; say whether there is something new to remember."""
    found = {_key(sample): sample.value for sample in family.samples}
    changed = bool(found != totals.counted)
    for key, before in totals.counted.items():
        if before > found.get(key, 0):
            totals.removed[key] = totals.removed.get(key, 0) + before - found.get(key, 0)
    totals.counted = found
    family.samples = [
        Sample(name, labels, found.get(key, 0) + totals.removed.get(key, 0))
        for key in found | totals.removed
        for name, labels in [json.loads(key)]
    ]
    return changed


def _key(sample: Sample) -> str:
    return json.dumps([sample.name, sample.labels])
