"""Which key a call of a model is counted for."""

from uuid import UUID

from accounts.keys.authentication import principal_for_key
from accounts.models import ApiKey, User
from billing.models import UsageRecord
from core.http.request_id import request_id
from core.security.scopes import Principal
from evolution.engine.llm import ChatRequest
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob, Outcome
from evolution.outcomes.reporting import report_outcome
from evolution.worker.claims import claim_job
from evolution.worker.llm_admission import admit
from evolution.worker.usage_ledger import Payer, UsageLedger
from playbooks.models import Playbook
from tests.factories import make_key


def report(playbook: Playbook, by: Principal) -> Outcome:
    made = report_outcome(playbook=playbook, by=by, task_description="x", outcome="success")
    return made.outcome


def agent(user: User) -> tuple[ApiKey, Principal]:
    key, token = make_key(user)
    return key, principal_for_key(token)


def keys_behind(job: EvolutionJob, *steps: str) -> list[UUID | None]:
    """What the ledger would write for these steps of the claimed job."""
    claim = claim_job(str(job.pk))
    assert claim is not None
    ledger = UsageLedger(Payer(claim.owner_id, claim.playbook_id, claim.job_id))
    return [ledger._call(ChatRequest(step, "gpt-4o-mini", [], 0)).api_key_id for step in steps]


def test_a_reflection_counts_for_the_key_that_reported(alice: User, playbook: Playbook) -> None:
    key, by = agent(alice)
    outcome = report(playbook, by)
    job = trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
    assert keys_behind(job, f"reflect:{outcome.pk}", "curate") == [key.pk, None]


def test_other_calls_count_for_the_key_that_triggered(alice: User, playbook: Playbook) -> None:
    key, by = agent(alice)
    report(playbook, Principal.of(alice))
    job = trigger_evolution(playbook=playbook, by=by).job
    assert (job.triggered_by, job.triggered_by_key) == (alice, key)
    assert keys_behind(job, "curate") == [key.pk]


def test_the_report_that_makes_an_evolution_due_has_triggered_it(
    alice: User, playbook: Playbook
) -> None:
    key, by = agent(alice)
    for _ in range(5):
        report(playbook, by)
    assert EvolutionJob.objects.get().triggered_by_key == key


def test_a_trainings_samples_count_for_no_key(alice: User, playbook: Playbook) -> None:
    report(playbook, agent(alice)[1])
    job = trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
    assert keys_behind(job, "reflect:17", "generate:17") == [None, None]


def test_the_ledger_writes_the_key_down(alice: User, playbook: Playbook) -> None:
    key, by = agent(alice)
    report(playbook, by)
    job = trigger_evolution(playbook=playbook, by=by).job
    claim = claim_job(str(job.pk))
    assert claim is not None
    payer = Payer(claim.owner_id, claim.playbook_id, claim.job_id)
    admit(UsageLedger(payer)._call(ChatRequest("curate", "gpt-4o-mini", [], 0)))
    assert UsageRecord.objects.get().api_key_id == key.pk


def test_the_ledgers_thread_knows_the_request(alice: User, playbook: Playbook) -> None:
    token = request_id.set("of-the-report")
    with UsageLedger(Payer(alice.pk, playbook.pk)) as ledger:
        assert ledger._write(request_id.get) == "of-the-report"
    request_id.reset(token)
