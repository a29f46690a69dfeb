"""Price earlier calls of unknown cost, after a price override or a new price list."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from billing.models import UsageRecord
from billing.pricing.calculator import PriceRule
from billing.pricing.usage_pricing import apply_price, price_rules, price_usage
from core.audit import record

BATCH_SIZE = 500
UPDATED_FIELDS = ("cost_usd", "price_source", "metadata", "updated_at")
ProgressCallback = Callable[["Backfill"], None]
Cursor = tuple[datetime, UUID]


@dataclass
class Backfill:
    """Counts of examined, repriced and still unknown calls."""

    examined: int = 0
    priced: int = 0
    change_usd: Decimal = Decimal(0)
    by_source: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)


def backfill_prices(
    *,
    dry_run: bool,
    rewrite: bool = False,
    since: datetime | None = None,
    until: datetime | None = None,
    model: str = "",
    batch_size: int = BATCH_SIZE,
    on_progress: ProgressCallback | None = None,
) -> Backfill:
    """Set the cost of completed calls whose price at their time is known now.

    `rewrite`: recompute known costs too. Each batch is one transaction with an entry in the audit
    log, so a killed run loses nothing, and the next one continues.
    """
    rows = UsageRecord.objects.exclude(status=UsageRecord.Status.STARTED)
    wanted = {"created_at__gte": since, "created_at__lt": until, "model": model or None}
    rows = rows.filter(**{name: value for name, value in wanted.items() if value is not None})
    if not rewrite:
        rows = rows.filter(cost_usd=None)
    done, overrides = Backfill(), price_rules()
    last: Cursor | None = None
    while last := _price_batch(_after(rows, last)[:batch_size], overrides, done, dry_run=dry_run):
        if on_progress is not None:
            on_progress(done)
    return done


def _after(rows: QuerySet[UsageRecord], last: Cursor | None) -> QuerySet[UsageRecord]:
    """The rows after the cursor, in order."""
    if last is not None:
        at, pk = last
        rows = rows.filter(Q(created_at__gt=at) | Q(created_at=at, pk__gt=pk))
    return rows.order_by("created_at", "pk")


def _price_batch(
    rows: QuerySet[UsageRecord], overrides: list[PriceRule], done: Backfill, *, dry_run: bool
) -> Cursor | None:
    """Price these rows; returns the cursor of the last one, None without rows."""
    if dry_run:
        found = list(rows)
        for call in found:
            _price(call, overrides, done)
        return _cursor(found)
    with transaction.atomic():
        found = list(rows.select_for_update(of=("self",), no_key=True))
        priced, usd = done.priced, done.change_usd
        changed = [call for call in found if _price(call, overrides, done)]
        UsageRecord.objects.bulk_update(changed, UPDATED_FIELDS)
        if changed:
            _audit(changed, done.priced - priced, done.change_usd - usd)
    return _cursor(found)


def _price(call: UsageRecord, overrides: list[PriceRule], done: Backfill) -> bool:
    """Set the price of a call without saving; True if it changed."""
    price = price_usage(call, overrides)
    done.examined += 1
    if price.cost is None:
        # A known cost stays even if no list has the price any more.
        done.unknown[call.model] += call.cost_usd is None
        return False
    if price.cost == call.cost_usd and price.source == call.price_source:
        return False
    done.priced += 1
    done.change_usd += price.cost - (call.cost_usd or Decimal(0))
    done.by_source[price.source] += 1
    apply_price(call, price)
    return True


def _audit(changed: list[UsageRecord], calls: int, usd: Decimal) -> None:
    detail: dict[str, Any] = {
        "calls": calls,
        "change_usd": str(usd),
        "from": changed[0].created_at.isoformat(),
        "to": changed[-1].created_at.isoformat(),
    }
    record(action="backfill_prices", by=None, subject=changed[0], **detail)


def _cursor(found: list[UsageRecord]) -> Cursor | None:
    return (found[-1].created_at, found[-1].pk) if found else None
