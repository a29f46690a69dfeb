"""Many at once: one job, one version, one row."""

from collections import Counter

import pytest
from django_q.models import OrmQ

from accounts.models import User
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob, Outcome
from evolution.outcomes.reporting import report_outcome
from evolution.worker.claims import claim_job
from evolution.worker.tasks import run_evolution
from playbooks.models import Playbook
from tests.factories import make_outcome
from tests.harness.concurrency import run_concurrently

pytestmark = [pytest.mark.databases, pytest.mark.django_db(transaction=True)]


def test_fifty_triggers_make_one_job(playbook: Playbook, alice: User) -> None:
    make_outcome(playbook, alice)
    answers = run_concurrently(
        50, lambda _: trigger_evolution(playbook=playbook, by=Principal.of(alice))
    )
    assert Counter(answer.is_new for answer in answers) == {True: 1, False: 49}
    assert len({answer.job.pk for answer in answers}) == 1
    assert EvolutionJob.objects.count() == OrmQ.objects.count() == 1


def test_one_of_ten_workers_gets_the_claim(playbook: Playbook, alice: User) -> None:
    make_outcome(playbook, alice)
    job = trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
    claims = run_concurrently(10, lambda _: claim_job(str(job.pk)))
    assert sum(claim is not None for claim in claims) == 1


def test_ten_deliveries_of_one_message_make_one_version(playbook: Playbook, alice: User) -> None:
    make_outcome(playbook, alice, notes="lesson: Read the log from its first error.")
    job = trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
    results = run_concurrently(10, lambda _: run_evolution(str(job.pk)))
    assert Counter(results) == {"completed": 1, "nothing to claim": 9}
    assert [version.number for version in playbook.versions.order_by("number")] == [1, 2]


def test_fifty_repeats_of_a_report_store_one_row(playbook: Playbook, alice: User) -> None:
    def repeat(_: int) -> object:
        return report_outcome(
            playbook=playbook,
            by=Principal.of(alice),
            task_description="Fix the build",
            outcome="success",
            idempotency_key="task-1",
        ).outcome.pk

    assert len(set(run_concurrently(50, repeat))) == 1
    assert Outcome.objects.count() == 1


def test_reports_during_twenty_threads_trigger_one_evolution(
    playbook: Playbook, alice: User
) -> None:
    run_concurrently(20, lambda _: make_outcome(playbook, alice))
    assert Outcome.objects.count() == 20
    assert EvolutionJob.objects.count() == 1
