"""Metering: a row before each physical call of a model, completed after it; and the sums."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, Max, Q, Sum
from django.db.models.functions import Trunc
from django.utils import timezone

from accounts.clock import database_now
from accounts.errors import Invalid
from accounts.models import User
from accounts.scopes import Principal
from billing.models import UsageRecord
from billing.pricing import price_call

# How far back the sums go, so that a page of them stays a page.
PERIODS = {
    "day": timedelta(days=90),
    "week": timedelta(weeks=52),
    "month": timedelta(days=3 * 366),
}
MOST_TOKENS = 2_147_483_647
TRIES = 5
AT_ONCE = 200
EXPECTED = "expected_tokens"
ABANDONED = "abandoned"
"""The error of a call whose process died before it could say how it ended."""
_ENDED = ~Q(status=UsageRecord.Status.STARTED)
_SUMS: dict[str, Any] = {
    "calls": Count("id", filter=_ENDED),
    "failed_calls": Count("id", filter=Q(status=UsageRecord.Status.FAILED)),
    "unfinished_calls": Count("id", filter=~_ENDED),
    "prompt": Sum("prompt_tokens"),
    "completion": Sum("completion_tokens"),
    "cached": Sum("cached_tokens"),
    "total": Sum("total_tokens"),
    "cost": Sum("cost_usd"),
    "unpriced": Count("id", filter=_ENDED & Q(cost_usd=None)),
}


@dataclass(frozen=True)
class UsageRow:
    """One bucket. `cost_usd` is None while a call in it has no known price.

    `known_cost_usd` sums the calls that have one; `unpriced_models` names the others' models.
    `unfinished_calls` began and never came to an end that we saw; they count in nothing else.
    """

    start: date
    calls: int = 0
    failed_calls: int = 0
    unfinished_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    total_tokens: int = 0
    known_cost_usd: Decimal = Decimal(0)
    unpriced_models: list[str] = field(default_factory=list)

    @property
    def cost_usd(self) -> Decimal | None:
        return None if self.unpriced_models else self.known_cost_usd


def begin_usage(
    *,
    user_id: UUID,
    playbook_id: UUID | None,
    job_id: UUID | None,
    step: str,
    operation: str,
    model: str,
    session_id: UUID | None = None,
    api_key_id: UUID | None = None,
    credential: str = "",
    expected_tokens: int = 0,
    held_usd: Decimal = Decimal(0),
) -> UsageRecord:
    """A call that is about to be made is on record, as the next attempt of its step.

    `expected_tokens` are those of the prompt, and `held_usd` the most that it can cost.
    """
    row = UsageRecord(
        user_id=user_id,
        playbook_id=playbook_id,
        job_id=job_id,
        session_id=session_id,
        step=step,
        operation=operation,
        model=model[:100],
        api_key_id=api_key_id,
        credential=credential,
        held_usd=held_usd,
        estimated=True,
        metadata={EXPECTED: expected_tokens},
    )
    for _ in range(TRIES - 1):
        try:
            return _insert(row)
        except IntegrityError:
            # Another worker took this attempt's number; read again and take the next.
            continue
    return _insert(row)


def finish_usage(
    *,
    record: UsageRecord,
    prompt_tokens: int,
    completion_tokens: int,
    cached_tokens: int,
    estimated: bool,
    model: str,
    request_id: str,
    error: str,
    api_url: str = "",
) -> UsageRecord:
    """The row carries what the call used and cost; `error` is a code, empty for an answer."""
    record.status = UsageRecord.Status.FAILED if error else UsageRecord.Status.ANSWERED
    record.model = (model or record.model)[:100]
    record.prompt_tokens = _count(prompt_tokens)
    record.completion_tokens = _count(completion_tokens)
    record.cached_tokens = min(_count(cached_tokens), record.prompt_tokens)
    record.total_tokens = _count(record.prompt_tokens + record.completion_tokens)
    record.estimated, record.request_id = estimated, request_id[:100]
    record.metadata = {k: v for k, v in record.metadata.items() if k not in {EXPECTED, "error"}}
    if error:
        record.metadata = record.metadata | {"error": error}
    record.held_usd, record.ended_at = Decimal(0), database_now()
    _price(record, api_url)
    record.save()
    return record


def settle_abandoned_usage(*, longest_call: timedelta) -> int:
    """Calls whose process died are ended, metered by what was sent; returns how many.

    No call lives for `longest_call`. One that a paused process ends later overwrites the estimate.
    """
    begun_before = database_now() - longest_call
    started = UsageRecord.objects.filter(status=UsageRecord.Status.STARTED)
    old = started.filter(created_at__lt=begun_before).values_list("pk", flat=True)
    return sum(_settle_abandoned(pk) for pk in list(old[:AT_ONCE]))


def _settle_abandoned(pk: UUID) -> int:
    with transaction.atomic():
        rows = UsageRecord.objects.filter(pk=pk, status=UsageRecord.Status.STARTED)
        record = rows.select_for_update(of=("self",), no_key=True, skip_locked=True).first()
        if record is None:
            return 0
        finish_usage(
            record=record,
            prompt_tokens=int(record.metadata.get(EXPECTED, 0)),
            completion_tokens=0,
            cached_tokens=0,
            estimated=True,
            model=record.model,
            request_id="",
            error=ABANDONED,
            api_url=settings.OPENAI_BASE_URL,
        )
    return 1


def usage_summary(*, who: User | Principal, period: str) -> list[UsageRow]:
    """What the user's playbooks used, newest bucket first, in UTC; one query.

    `period` is day, week (from Monday) or month. Empty buckets are left out. Raises Invalid.
    """
    if period not in PERIODS:
        raise Invalid.field("period", f"Choose one of: {', '.join(PERIODS)}.")
    since = timezone.now() - PERIODS[period]
    rows = UsageRecord.objects.for_user(who).filter(created_at__gte=since)
    parts = (
        rows.annotate(start=Trunc("created_at", period))
        .values("start", "model")
        .annotate(**_SUMS)
        .order_by("-start", "model")
    )
    by_start: dict[datetime, list[Mapping[str, Any]]] = defaultdict(list)
    for part in parts:
        by_start[part["start"]].append(part)
    return [_row(start.date(), found) for start, found in by_start.items()]


def _row(start: date, parts: list[Mapping[str, Any]]) -> UsageRow:
    return UsageRow(
        start=start,
        calls=_sum(parts, "calls"),
        failed_calls=_sum(parts, "failed_calls"),
        unfinished_calls=_sum(parts, "unfinished_calls"),
        prompt_tokens=_sum(parts, "prompt"),
        completion_tokens=_sum(parts, "completion"),
        cached_tokens=_sum(parts, "cached"),
        total_tokens=_sum(parts, "total"),
        known_cost_usd=sum((part["cost"] or Decimal(0) for part in parts), Decimal(0)),
        unpriced_models=[part["model"] for part in parts if part["unpriced"]],
    )


def _sum(parts: Iterable[Mapping[str, Any]], name: str) -> int:
    return sum(part[name] or 0 for part in parts)


def _insert(row: UsageRecord) -> UsageRecord:
    with transaction.atomic():
        same = UsageRecord.objects.filter(job_id=row.job_id, step=row.step)
        row.attempt = (same.aggregate(last=Max("attempt"))["last"] or 0) + 1
        row.save(force_insert=True)
    return row


def _price(record: UsageRecord, api_url: str) -> None:
    price = price_call(
        model=record.model,
        prompt_tokens=record.prompt_tokens,
        completion_tokens=record.completion_tokens,
        cached_tokens=record.cached_tokens,
        at=record.created_at,
        api_url=api_url or settings.OPENAI_BASE_URL,
    )
    record.cost_usd, record.price_source = price.cost, price.source
    if price.reason:
        record.metadata = record.metadata | {"no_price": price.reason}


def _count(tokens: int) -> int:
    """A provider's figure, held to what the column takes."""
    return min(max(tokens, 0), MOST_TOKENS)
