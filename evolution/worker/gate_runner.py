"""Answers cases with the Generator, where a model is set; the answers are compared exactly."""

from contextlib import suppress
from decimal import Decimal

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import Sum

from billing.models import UsageRecord
from billing.pricing.usage_pricing import price_in_usd
from core.security.scopes import Principal
from evolution.engine.cost_budget import Budget, CostLimitReached
from evolution.engine.generator import generate
from evolution.engine.inputs import PlaybookInput
from evolution.engine.llm import LLM, AnswerError, LLMError
from evolution.outcomes.cases import MAX_TARGET_BYTES, CaseTask, begin_unchecked, next_case
from evolution.outcomes.reporting import report_outcome
from evolution.worker.engine_run import connect_llm, uses_llm
from evolution.worker.usage_ledger import Payer, UsageLedger
from playbooks.models import Trial
from playbooks.services.loading import document_of, lock_playbook

STEP = "case:"
LEASE_SECONDS = 600
"""After this time another process goes on for one that died."""


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
                    begin_unchecked(playbook, f"more than {limit} US$ would be needed")
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
