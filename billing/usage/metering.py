"""Metering: a usage record before each API call to a model, completed after it."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Avg, CharField, UUIDField

from billing.models import UsageRecord
from billing.pricing.usage_pricing import apply_price, price_usage, resolve_base_url
from core.clock import database_now
from core.http.request_id import request_id
from core.sql.compiled_queries import CompiledQuery, Param

MAX_TOKENS = 2_147_483_647
MAX_TRIES = 5
BATCH_SIZE = 200
EXPECTED_TOKENS_KEY = "expected_tokens"
AGENTS = {"reflect": "reflector", "curate": "curator", "generate": "generator"}
"""The role of the engine that makes a call."""
ABANDONED = "abandoned"
"""The error code of a call whose process died."""
ANSWER_LOST = {ABANDONED, "timeout"}
"""Errors after which the provider may have answered, and charges for an answer that is lost."""
FIELDS_OF_THE_END = (
    *("status", "ended_at", "base_url", "model", "prompt_tokens", "completion_tokens"),
    *("cached_tokens", "total_tokens", "estimated", "cost_usd", "held_usd", "price_source"),
    *("held_tokens", "request_id", "metadata", "updated_at"),
)


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
    api_url: str = "",
    expected_tokens: int = 0,
    **fields: Any,
) -> UsageRecord:
    """Record a call that is about to be made as the next attempt of its step.

    `expected_tokens` are those of the prompt. `fields`: credential, own_key, and what is held.
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
        base_url=resolve_base_url(api_url),
        estimated=True,
        metadata={
            EXPECTED_TOKENS_KEY: expected_tokens,
            "operation": operation,
            "agent": AGENTS.get(operation, ""),
            "playbook": str(playbook_id or ""),
            "request_id": request_id.get(),
        },
        **fields,
    )
    for _ in range(MAX_TRIES - 1):
        try:
            return _insert(row)
        except IntegrityError:
            continue  # another worker took this attempt number
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
    total_tokens: int = 0,
) -> UsageRecord:
    """Store what the call used and cost; `error` is a code, empty on success.

    Some providers leave the tokens of their model's reasoning out of `completion_tokens` and count
    them in `total_tokens` only, and charge for them: the larger figure is billed. If the sweep has
    completed the call meanwhile, its estimate is corrected; the ledger's trigger does the sums.
    """
    record.status = UsageRecord.Status.FAILED if error else UsageRecord.Status.ANSWERED
    record.model = (model or record.model)[:100]
    record.prompt_tokens = _clamp_tokens(prompt_tokens)
    if estimated and not completion_tokens and error in ANSWER_LOST:
        completion_tokens = _usual_output(record)
    record.completion_tokens = _clamp_tokens(max(completion_tokens, total_tokens - prompt_tokens))
    record.cached_tokens = min(_clamp_tokens(cached_tokens), record.prompt_tokens)
    record.total_tokens = _clamp_tokens(record.prompt_tokens + record.completion_tokens)
    record.estimated, record.request_id = estimated, request_id[:100]
    record.metadata = {
        k: v for k, v in record.metadata.items() if k not in {EXPECTED_TOKENS_KEY, "error"}
    }
    if error:
        record.metadata = record.metadata | {"error": error}
    record.held_usd, record.held_tokens = Decimal(0), 0
    record.ended_at = record.updated_at = database_now()
    record.base_url = resolve_base_url(api_url) if api_url else record.base_url
    apply_price(record, price_usage(record))
    begun = UsageRecord.objects.filter(pk=record.pk, status=UsageRecord.Status.STARTED)
    if not begun.update(**{name: getattr(record, name) for name in FIELDS_OF_THE_END}):
        _correct_estimate(record)
    return record


def _correct_estimate(record: UsageRecord) -> None:
    """Replace the estimate; nothing if the record is gone. What its account's end cleared stays."""
    with transaction.atomic():
        rows = UsageRecord.objects.select_for_update(of=("self",), no_key=True)
        if rows.filter(pk=record.pk).exists():
            record.save(update_fields=FIELDS_OF_THE_END)


def settle_abandoned_usage(*, max_call_duration: timedelta) -> int:
    """Complete the calls of dead processes with an estimate of what was sent; returns how many.

    No call takes `max_call_duration`. One that a paused process completes later corrects it.
    """
    begun_before = database_now() - max_call_duration
    started = UsageRecord.objects.filter(status=UsageRecord.Status.STARTED)
    old = started.filter(created_at__lt=begun_before).values_list("pk", flat=True)
    return sum(_settle_abandoned(pk) for pk in list(old[:BATCH_SIZE]))


def _settle_abandoned(pk: UUID) -> int:
    with transaction.atomic():
        rows = UsageRecord.objects.filter(pk=pk, status=UsageRecord.Status.STARTED)
        record = rows.select_for_update(of=("self",), no_key=True, skip_locked=True).first()
        if record is None:
            return 0
        finish_usage(
            record=record,
            prompt_tokens=int(record.metadata.get(EXPECTED_TOKENS_KEY, 0)),
            completion_tokens=0,
            cached_tokens=0,
            estimated=True,
            model=record.model,
            request_id="",
            error=ABANDONED,
        )
    return 1


def _usual_output(record: UsageRecord) -> int:
    """The mean length of the day's answers to such calls: what a lost one is estimated at."""
    alike = UsageRecord.objects.filter(
        credential=record.credential,
        created_at__gt=record.created_at - timedelta(days=1),
        operation=record.operation,
        model__startswith=record.model,
        status=UsageRecord.Status.ANSWERED,
    )
    return int(alike.aggregate(mean=Avg("completion_tokens", default=0))["mean"])


def _insert(row: UsageRecord) -> UsageRecord:
    with transaction.atomic():
        last = _last_attempt(row)
        row.attempt = last.attempt + 1 if last else 1
        row.save(force_insert=True)
    return row


def _last_attempt(row: UsageRecord) -> UsageRecord | None:
    if row.job_id is not None:
        return LAST_ATTEMPT_OF_JOB.first(job=row.job_id, step=row.step)
    # Of a session: the compiled query cannot match, since in SQL NULL equals nothing.
    return UsageRecord.objects.filter(job_id=None, step=row.step).order_by("-attempt").first()


LAST_ATTEMPT_OF_JOB = CompiledQuery(
    lambda: (
        UsageRecord.objects.only("attempt")
        .filter(job_id=Param("job", UUIDField()), step=Param("step", CharField()))
        .order_by("-attempt")[:1]
    )
)


def _clamp_tokens(tokens: int) -> int:
    """A provider's token count within the range of the column."""
    return min(max(tokens, 0), MAX_TOKENS)
