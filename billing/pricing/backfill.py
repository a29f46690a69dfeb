"""Price earlier calls of unknown cost, after a price override or a new price list."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction

from billing.models import PriceOverride, UsageRecord
from billing.pricing.usage_pricing import apply_price, price_usage
from core.audit import record

BATCH_SIZE = 500


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
    apply: bool,
    rewrite: bool = False,
    since: datetime | None = None,
    until: datetime | None = None,
    model: str = "",
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
    ids = list(rows.order_by("created_at", "pk").values_list("pk", flat=True))
    done, overrides = Backfill(), list(PriceOverride.objects.order_by())
    for at in range(0, len(ids), BATCH_SIZE):
        _price_batch(ids[at : at + BATCH_SIZE], overrides, done, apply=apply)
    return done


def _price_batch(
    ids: list[UUID], overrides: list[PriceOverride], done: Backfill, *, apply: bool
) -> None:
    priced, usd = done.priced, done.change_usd
    with transaction.atomic():
        rows = UsageRecord.objects.filter(pk__in=ids).order_by("created_at", "pk")
        if apply:
            rows = rows.select_for_update(of=("self",), no_key=True)
        changed = [call for call in rows if _price(call, overrides, done)]
        if not changed or not apply:
            return
        fields = ["cost_usd", "price_source", "metadata", "updated_at"]
        UsageRecord.objects.bulk_update(changed, fields)
        detail: dict[str, Any] = {
            "calls": done.priced - priced,
            "change_usd": str(done.change_usd - usd),
            "from": changed[0].created_at.isoformat(),
            "to": changed[-1].created_at.isoformat(),
        }
        record(action="backfill_prices", by=None, subject=changed[0], **detail)


def _price(call: UsageRecord, overrides: list[PriceOverride], done: Backfill) -> bool:
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
