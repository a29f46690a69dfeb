"""Price earlier calls of unknown cost, after a price override or a new price list."""

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from billing.models import PriceOverride, QuotaPeriod, UsageRecord
from billing.pricing.usage_pricing import apply_price, price_usage
from core.audit import record

BATCH_SIZE = 500


@dataclass
class Backfill:
    """How many calls were priced, by the price's source, and which stay unknown, by model."""

    cost_usd: Decimal = Decimal(0)
    by_source: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)


def backfill_prices(*, apply: bool) -> Backfill:
    """Set the cost of completed calls whose price at their time is known now.

    Each batch is one transaction with an entry in the audit log, so a killed run loses nothing,
    and the next one continues.
    """
    rows = UsageRecord.objects.exclude(status=UsageRecord.Status.STARTED).filter(cost_usd=None)
    ids = list(rows.order_by("created_at", "pk").values_list("pk", flat=True))
    done, overrides = Backfill(), list(PriceOverride.objects.order_by())
    for at in range(0, len(ids), BATCH_SIZE):
        _price_batch(ids[at : at + BATCH_SIZE], overrides, done, apply=apply)
    return done


def _price_batch(
    ids: list[UUID], overrides: list[PriceOverride], done: Backfill, *, apply: bool
) -> None:
    usd = done.cost_usd
    with transaction.atomic():
        rows = UsageRecord.objects.filter(pk__in=ids, cost_usd=None).order_by("created_at", "pk")
        if apply:
            rows = rows.select_for_update(of=("self",), no_key=True)
        priced = [call for call in rows if _price(call, overrides, done)]
        if not priced or not apply:
            return
        fields = ["cost_usd", "price_source", "metadata", "updated_at"]
        UsageRecord.objects.bulk_update(priced, fields)
        for call in priced:
            if call.quota_period_id:
                # Nobody pays overage for a price that was unknown when the call was made.
                months = QuotaPeriod.objects.filter(pk=call.quota_period_id)
                months.update(overage_from=F("overage_from") + call.cost_usd)
        detail: dict[str, Any] = {
            "calls": len(priced),
            "change_usd": str(done.cost_usd - usd),
            "from": priced[0].created_at.isoformat(),
            "to": priced[-1].created_at.isoformat(),
        }
        record(action="backfill_prices", by=None, subject=priced[0], **detail)


def _price(call: UsageRecord, overrides: list[PriceOverride], done: Backfill) -> bool:
    """Set the price of a call without saving; False if it stays unknown."""
    price = price_usage(call, overrides)
    if price.cost is None:
        done.unknown[call.model] += 1
        return False
    done.cost_usd += price.cost
    done.by_source[price.source] += 1
    apply_price(call, price)
    return True
