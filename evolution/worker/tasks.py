"""Runs one evolution, turns every error into a state of its job, and answers versions' cases."""

import logging
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from functools import partial

from django.conf import settings
from django.core.cache import cache
from django.db import Error as DatabaseFault
from django.db import InterfaceError, InternalError, OperationalError, connection, transaction
from django.db.models import Sum

from billing.models import UsageRecord
from billing.pricing.usage_pricing import price_in_usd
from core.http.request_id import request_id
from core.security.scopes import Principal
from evolution.engine.cost_budget import Budget, CostLimitReached
from evolution.engine.evolve import NothingReflected
from evolution.engine.generator import generate
from evolution.engine.inputs import PlaybookInput
from evolution.engine.llm import LLM, AnswerError, CredentialError, LLMError, TransientError
from evolution.jobs.message_queue import RECONNECT_SECONDS
from evolution.models import EvolutionJob
from evolution.outcomes.cases import MAX_TARGET_BYTES, CaseTask, begin_unchecked, next_case
from evolution.outcomes.reporting import report_outcome
from evolution.worker.claims import Claim, FenceLost, claim_job, keep_lease
from evolution.worker.engine_run import connect_llm, run_engine, uses_llm
from evolution.worker.failures import fail_job, requeue_after_error, requeue_claimed
from evolution.worker.publication import publish
from evolution.worker.usage_ledger import Payer, UsageLedger, job_context
from playbooks.models import Trial
from playbooks.services.loading import document_of, lock_playbook
from playbooks.services.publishing import CollapseGuard

logger = logging.getLogger(__name__)

# Errors of a database that restarts or is overloaded, not of the query.
DATABASE_UNAVAILABLE = (OperationalError, InterfaceError, InternalError)
STEP = "case:"
LEASE_SECONDS = 600
"""After this time another process goes on for one that died."""


def run_evolution(job_id: str) -> str:
    """Claim one job and run it; never raises, and is safe to repeat.

    Returns the result in a word. Workers claim by turn instead (claims.claim_next): for them this
    function's path in a message means that some job is due.
    """
    try:
        claim = claim_job(job_id)
    except DatabaseFault as error:
        return _without_database(job_id, error)
    return "nothing to claim" if claim is None else run_claim(claim)


def run_claim(claim: Claim) -> str:
    """Run a claimed job to its end or requeue it; never raises. Returns the result in a word.

    Its log lines carry the id of the request that triggered it.
    """
    known = request_id.set(claim.request_id)
    try:
        try:
            return _run(claim)
        except FenceLost:
            # If it was cancelled, the calls that were under way have ended since.
            cancelled = EvolutionJob.objects.filter(pk=claim.job_id, status="cancelled")
            for job in cancelled:
                cancelled.update(token_totals=job.sum_usage())
            return "overtaken"
    except DatabaseFault as error:
        return _without_database(str(claim.job_id), error)
    finally:
        request_id.reset(known)


def _without_database(job_id: str, error: DatabaseFault) -> str:
    """Nothing can be written now: the lease expires and the sweep requeues the job."""
    logger.warning("evolution %s: no database (%s)", job_id, type(error).__name__)
    return "no database"


def _run(claim: Claim) -> str:
    try:
        with job_context(claim), keep_lease(claim):
            publish(claim, run_engine(claim))
    except FenceLost:
        raise
    except Exception as error:  # noqa: BLE001 - the task's edge: every error becomes a job state
        return _retry_until_database_is_back(partial(handle_failure, claim, error))
    return "completed"


def _retry_until_database_is_back(write: Callable[[], str]) -> str:
    """Call `write` until the database accepts it, for at most the length of a lease.

    Otherwise the sweep would count a dead worker for each restart of the database, and the
    fourth would fail the job.
    """
    until = time.monotonic() + settings.JOB_LEASE_SECONDS
    while True:
        try:
            if not connection.in_atomic_block:
                connection.close_if_unusable_or_obsolete()
            return write()
        except DATABASE_UNAVAILABLE:
            if time.monotonic() > until:
                raise
            threading.Event().wait(RECONNECT_SECONDS)


def handle_failure(claim: Claim, error: Exception) -> str:
    """Requeue the job after a transient error, fail it where a person has to act."""
    if isinstance(error, DatabaseFault):
        return _requeue_after_database_error(claim, error)
    if isinstance(error, TransientError | CredentialError):
        return requeue_after_error(claim, error)
    if isinstance(error, NothingReflected):
        code, message = error.code, error.message
        return fail_job(claim, code=code, message=message, set_aside=error.set_aside)
    if isinstance(error, AnswerError | CollapseGuard):
        return fail_job(claim, code=error.code, message=error.message)
    # Type and place only: the text of an unknown error may quote a playbook or an outcome.
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{place.filename}:{place.lineno}"
    logger.error("evolution %s: %s at %s", claim.job_id, type(error).__name__, where)
    return requeue_claimed(claim, reason=f"internal error ({type(error).__name__})")


def _requeue_after_database_error(claim: Claim, error: DatabaseFault) -> str:
    """Requeue the job; only an error of the query, not of the database, costs an attempt."""
    logger.warning("evolution %s: the database failed (%s)", claim.job_id, type(error).__name__)
    return requeue_claimed(
        claim,
        reason="the database did not answer in time",
        costs_attempt=not isinstance(error, DATABASE_UNAVAILABLE),
        code="database",
    )


def run_gates() -> None:
    """Check each version that waits for it, one after the other; never in a transaction."""
    waiting = Trial.objects.filter(status=Trial.Status.GATING, playbook__owner__isnull=False)
    for trial in waiting.select_related("playbook__owner"):
        lease = f"gate:{trial.pk}"
        if cache.add(lease, 1, LEASE_SECONDS):
            with suppress(LLMError):  # the sweep tries again, until the wait is over
                run_gate(trial)
            cache.delete(lease)


def run_gate(trial: Trial) -> None:
    """Answer what nobody has answered, within GATE_MAX_USD; raises the other LLMErrors."""
    playbook, owner = trial.playbook, trial.playbook.owner
    assert owner is not None  # noqa: S101 - starters do not evolve
    by, limit = Principal.of(owner), Decimal(str(settings.GATE_MAX_USD))
    calls = UsageRecord.objects.filter(playbook_id=playbook.pk, step__startswith=f"generate:{STEP}")
    spent = calls.filter(created_at__gte=trial.created_at).aggregate(sum=Sum("cost_usd"))["sum"]
    budget = Budget(limit=limit, price=price_in_usd, spent=spent or Decimal(0))
    with UsageLedger(Payer(owner.pk, playbook.pk), budget) as ledger:
        if not uses_llm(ledger):
            return
        llm = connect_llm(ledger)
        while (task := next_case(playbook=playbook, by=by)) is not None:
            try:
                answer = _answer(llm, task)
            except CostLimitReached:
                with transaction.atomic():
                    lock_playbook(playbook)
                    begin_unchecked(playbook, f"more than ${limit} would be needed")
                return
            report_outcome(
                playbook=playbook,
                by=by,
                task_description="A case.",
                outcome="failure",
                notes=answer[:MAX_TARGET_BYTES],
                serving_id=task.serving_id,
                signal="test",
            )


def _answer(llm: LLM, task: CaseTask) -> str:
    """The Generator's answer; empty for one that cannot be read, which is wrong."""
    case, version = task.run.case, task.version
    try:
        return generate(
            llm,
            settings.ACE_GENERATOR_MODEL,
            sample_id=f"{STEP}{task.run.unit}",
            task=case.question,
            context=case.context,
            playbook=PlaybookInput(document_of(version), version.playbook.token_budget),
        ).final_answer
    except AnswerError:
        return ""
