"""Admission of LLM calls: circuit breaker, concurrency and cost limits, over all processes.

Every call of one key passes `admit`, which locks the key's circuit for one short transaction: it
checks breaker, free slots and cost limits and writes the ledger's row in one step. What is under
way, failed or spent is read from the ledger: there is no second count.
"""

import time
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import CharField, Count, DateTimeField, QuerySet, Subquery

from billing.admission import begin_call
from billing.errors import LimitReached
from billing.limits.quota import record_quota_exceeded
from billing.limits.spending import Spender, max_cost
from billing.models import UsageRecord
from billing.usage import metering as billing
from core.clock import database_now
from core.sql.compiled_queries import CompiledQuery, Param
from evolution.engine.adaptive_limits import AdaptiveLimits, is_local, longest_deadline
from evolution.engine.circuit_breaker import (
    MODEL_CODES,
    OUTAGE_CODES,
    REFUSAL_MESSAGES,
    WINDOW,
    is_failing,
)
from evolution.engine.llm import CallHeldBack, Usage
from evolution.models import ProviderCircuit
from evolution.worker.credentials import Credential

CHATS_PER_USER = 4
"""Answers at a time for one person: two chats side by side."""
PERSON_WAITS = timedelta(seconds=2)
"""How long a session's call that found no slot counts as waiting; it asks again all the while."""


@dataclass(frozen=True)
class LLMCall:
    """A call to be admitted: its payer, credential, subject and largest size."""

    owner_id: UUID
    playbook_id: UUID | None
    job_id: UUID | None
    api_key_id: UUID | None
    credential: Credential
    step: str
    operation: str
    model: str
    most: Usage
    session_id: UUID | None = None
    on_plan: bool = True

    @property
    def counts(self) -> bool:
        """Whether its tokens count against the owner's plan: not with the owner's own key."""
        return self.on_plan and not self.credential.own


@dataclass
class AdmittedCall:
    """A call under way: its row in the ledger, and the circuits of which it is the probe.

    `limits`: those of its endpoint when it began, `together`: calls under way then, with itself.
    """

    call: LLMCall
    record: UsageRecord
    probes: frozenset[str]
    limits: AdaptiveLimits
    together: int
    begun: float = field(default_factory=time.monotonic)


class ProviderBusy(Exception):
    """The key is at its limit of concurrent calls, or calls under way hold the rest of a plan."""


def max_call_duration() -> timedelta:
    """The longest any call can last: the transport's deadline, and time to record its end."""
    return timedelta(seconds=longest_deadline(settings.LLM_DEADLINE_SECONDS) + 10)


def admit(call: LLMCall) -> AdmittedCall:
    """Record the call, so that it can be made.

    Raises ProviderBusy; CallHeldBack while the provider is down, or a cost limit or the owner's
    plan is used up; CredentialError while the key or the model is refused.
    """
    try:
        return _admit(call)
    except ProviderBusy:
        if call.session_id is not None:
            rows = ProviderCircuit.objects.filter(key=call.credential.circuit_key)
            rows.update(person_waits_until=database_now() + PERSON_WAITS)
        raise
    except LimitReached as reached:
        if reached.is_busy:
            raise ProviderBusy(str(reached)) from None
        record_quota_exceeded(reached, user_id=call.owner_id)
        raise CallHeldBack(
            reached.code,
            str(reached),
            retry_after=(reached.until - database_now()).total_seconds(),
            mark=reached.mark,
            want=reached.want,
        ) from None


def _admit(call: LLMCall) -> AdmittedCall:
    # Before the circuits are locked: other calls of this key need not wait for a price.
    want = max_cost(
        model=call.model,
        prompt_tokens=call.most.prompt_tokens,
        completion_tokens=call.most.completion_tokens,
        api_url=call.credential.base_url,
    )
    with transaction.atomic():
        circuits = _lock_circuits(call)
        now = database_now()
        own = next(row for row in circuits if row.key == call.credential.circuit_key)
        limits = _limits_of(own, call)
        longest = timedelta(seconds=limits.deadline + 10)
        probes = frozenset(row.key for row in circuits if _enter_circuit(row, now, longest))
        person_waits = own.person_waits_until is not None and own.person_waits_until > now
        _check_chats(call, now - longest)
        under_way = _under_way(own.key, now - longest)
        if under_way >= max_calls(call, limits, person_waits=person_waits):
            # Rolls back the probe too.
            raise ProviderBusy
        record = begin_call(
            Spender(
                call.owner_id, call.playbook_id, call.credential.circuit_key, call.credential.own
            ),
            want=want,
            tokens=call.most.prompt_tokens + call.most.completion_tokens if call.counts else None,
            now=now,
            job_id=call.job_id,
            session_id=call.session_id,
            step=call.step,
            operation=call.operation,
            model=call.model,
            api_key_id=call.api_key_id,
            api_url=call.credential.base_url,
            expected_tokens=call.most.prompt_tokens,
        )
    return AdmittedCall(call, record, probes, limits, under_way + 1)


def _check_chats(call: LLMCall, since: datetime) -> None:
    """Raise CallHeldBack for one chat too many of its person, over all processes.

    Their key's circuit is locked: no other chat of theirs begins meanwhile.
    """
    rows = UsageRecord.objects.filter(user=call.owner_id, session_id__isnull=False)
    open_calls = rows.filter(status=UsageRecord.Status.STARTED, created_at__gt=since)
    if call.session_id is not None and open_calls.count() >= CHATS_PER_USER:
        message = f"{CHATS_PER_USER} of your chats are being answered."
        wait = max_call_duration().total_seconds()
        raise CallHeldBack("too_many_chats", message, retry_after=wait)


def _limits_of(row: ProviderCircuit, call: LLMCall) -> AdaptiveLimits:
    return AdaptiveLimits(
        settings.LLM_CALLS_PER_KEY,
        settings.LLM_DEADLINE_SECONDS,
        is_local(call.credential.base_url),
        *(row.most_calls, row.slowest_seconds, row.lowered_at),
    )


def max_calls(call: LLMCall, limits: AdaptiveLimits, *, person_waits: bool = False) -> int:
    """Concurrent calls with its key up to which the call is made.

    The last quarter is for sessions and chats: evolutions can wait, a person at a chat does not.
    While one waits for a slot, the next free one is theirs.
    """
    most = limits.max_calls
    return most if call.session_id else max(1, most - max(1, most // 4)) - int(person_waits)


def finish_call(
    admitted: AdmittedCall, *, usage: Usage, model: str, request_id: str, error: str = ""
) -> UsageRecord:
    """Record the end of the call in ledger and circuits; `error` is a code or empty."""
    call, after = admitted.call, time.monotonic() - admitted.begun
    learns = bool(admitted.probes) or error in OUTAGE_CODES or error in REFUSAL_MESSAGES
    learns = learns or (not error and replace(admitted.limits).answered(after))
    with transaction.atomic():
        if learns:
            # Circuits first, as in `admit`, then the day's sums and the plan's period: in the other
            # order two calls could deadlock.
            list(_lock_circuits(call))
        record = billing.finish_usage(
            record=admitted.record,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
            estimated=usage.estimated,
            model=model,
            request_id=request_id,
            error=error,
            api_url=call.credential.base_url,
            total_tokens=usage.total_tokens,
        )
        if learns:
            _update_circuits(admitted, error, after)
    return record


def _lock_circuits(call: LLMCall) -> list[ProviderCircuit]:
    """The rows of the key and of the model, if there are any, in an order that cannot deadlock."""
    key, of_model = call.credential.circuit_key, call.credential.circuit_key_of_model(call.model)
    found = LOCKED.all(key=key, of_model=of_model)
    if all(row.key != key for row in found):  # the first call of this key
        _ensure_circuit(key, call)
        found = LOCKED.all(key=key, of_model=of_model)
    return found


KEY, OF_MODEL = Param("key", CharField()), Param("of_model", CharField())
LOCKED = CompiledQuery(
    lambda: (
        ProviderCircuit.objects.select_for_update(of=("self",), no_key=True)
        .filter(key__in=(KEY, OF_MODEL))
        .order_by("key")
    )
)


def _under_way(key: str, since: datetime) -> int:
    """The number of running calls with this key begun `since`; its circuit is locked."""
    found: Any = RUNNING.first(key=key, since=since)
    return found.calls or 0


def _running() -> QuerySet[ProviderCircuit]:
    begun = UsageRecord.objects.filter(
        credential=KEY,
        status=UsageRecord.Status.STARTED,
        created_at__gt=Param("since", DateTimeField()),
    )
    calls = begun.order_by().values("credential").annotate(n=Count("*")).values("n")
    return ProviderCircuit.objects.only("pk").filter(key=KEY).annotate(calls=Subquery(calls))


RUNNING = CompiledQuery(_running)


def _ensure_circuit(key: str, call: LLMCall, model: str = "") -> None:
    label = f"{call.credential.base_url or 'the default address'} {model}".strip()[:200]
    ProviderCircuit.objects.get_or_create(
        key=key, defaults={"label": label, "is_user_key": call.credential.own}
    )


def _enter_circuit(row: ProviderCircuit, now: datetime, longest: timedelta) -> bool:
    circuit = row.circuit
    is_probe = circuit.enter(now, longest=longest)
    if is_probe:
        row.save_circuit(circuit)
    return is_probe


def _update_circuits(admitted: AdmittedCall, error: str, after: float) -> None:
    call, now = admitted.call, database_now()
    if error in MODEL_CODES:
        key = call.credential.circuit_key_of_model(call.model)
        _ensure_circuit(key, call, call.model)
    for row in _lock_circuits(call):
        is_of_model = row.key != call.credential.circuit_key
        is_down = not is_of_model and _learn_speed(row, admitted, error, after, now)
        # A refused model says nothing about the key, and the other way round.
        code = error if (error in MODEL_CODES) == is_of_model else ""
        circuit = row.circuit
        circuit.leave(
            now,
            code,
            is_probe=row.key in admitted.probes,
            is_failing=is_down or (code in OUTAGE_CODES and _is_failing(row, now)),
        )
        row.save_circuit(circuit)


def _learn_speed(
    row: ProviderCircuit, admitted: AdmittedCall, error: str, after: float, now: datetime
) -> bool:
    """Learn from the call's end; True for a time-out that says that the provider is down.

    One for which calls were too many or too slow says nothing of the kind.
    """
    limits, is_down = _limits_of(row, admitted.call), False
    if error == "timeout":
        seconds = admitted.limits.deadline
        others = _under_way(row.key, now - timedelta(seconds=seconds + 10))
        begun, together = admitted.record.created_at, max(admitted.together, others + 1)
        is_down = not limits.timed_out(begun=begun, now=now, together=together, after=seconds)
        row.counted_from = row.counted_from if is_down else now
    elif not error:
        limits.answered(after)
    row.most_calls, row.slowest_seconds = limits.most_calls, limits.slowest_seconds
    row.lowered_at = limits.lowered_at
    return is_down


def _is_failing(row: ProviderCircuit, now: datetime) -> bool:
    since = max(now - WINDOW, row.counted_from or now - WINDOW)
    ended = UsageRecord.objects.filter(
        credential=row.key, created_at__gt=since - max_call_duration(), ended_at__gt=since
    )
    failed = ended.filter(
        status=UsageRecord.Status.FAILED, metadata__error__in=sorted(OUTAGE_CODES)
    )
    return is_failing(failed.count(), ended.count())
