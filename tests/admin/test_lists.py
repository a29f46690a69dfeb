"""Admin lists cost as many queries for many rows as for few, and long ones are fast."""

import time
import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from billing.models import UsageRecord
from core.models import AuditEntry
from evolution.models import Outcome
from playbooks.models import Playbook
from tests.factories import make_key, make_playbook, make_user
from tests.harness.admin_client import AdminClient
from tests.harness.sample_account import World

pytestmark = pytest.mark.postgres


# Session and user are two; then the page's rows, their number, and what filters and dates ask for.
PINNED = {
    "accounts_user": 8,
    "accounts_apikey": 8,
    "core_auditentry": 9,
    "billing_usagerecord": 8,
    "playbooks_playbook": 8,
    "playbooks_version": 8,
    "playbooks_delta": 6,
    "playbooks_bullet": 6,
    "playbooks_reviewitem": 8,
    "playbooks_trial": 8,
    "evolution_evolutionjob": 9,
    "evolution_outcome": 8,
    "evolution_reflection": 8,
}
LONG = 10_000
SLOWEST = 3.0
"""Seconds for a list of 10,000 rows; on an idle machine it is about a tenth of that."""


def queries(desk: AdminClient, model: str) -> int:
    with CaptureQueriesContext(connection) as found:
        desk.rows(model)
    return len(found)


def test_each_list_is_pinned_and_does_not_grow(
    desk: AdminClient, world: World, alice: User
) -> None:
    before = {model: queries(desk, model) for model in PINNED}
    for number in range(4):
        user = make_user(f"{number}@example.org")
        make_key(user)
        make_playbook(user, name=f"More {number}")
    copies(world, 4)
    assert before == {model: queries(desk, model) for model in PINNED}
    assert {model: count for model, count in before.items() if count > PINNED[model]} == {}


def copies(world: World, number: int) -> None:
    """More outcomes, calls and entries, without the services that would make each."""
    owner = world.owner
    Outcome.objects.bulk_create(outcomes(world, number))
    calls = [
        UsageRecord(user=owner, job_id=uuid.uuid4(), step="s", attempt=1, operation="curate")
        for _ in range(number)
    ]
    UsageRecord.objects.bulk_create(calls)
    AuditEntry.objects.bulk_create(
        AuditEntry(action="log_in", owner_id=owner.pk) for _ in range(number)
    )


def outcomes(world: World, number: int) -> list[Outcome]:
    version = world.playbook.current_version
    fields = {"version": version, "task_description": "x", "status": "success"}
    return [Outcome(playbook=world.playbook, **fields) for _ in range(number)]


def test_ten_thousand_outcomes_are_no_burden(desk: AdminClient, world: World) -> None:
    Outcome.objects.bulk_create(outcomes(world, LONG), batch_size=2_000)
    for query in ({}, {"q": "alice"}, {"state": "pending"}):
        started = time.perf_counter()
        desk.rows("evolution_outcome", **query)
        assert time.perf_counter() - started < SLOWEST, query


def test_no_list_counts_all_rows_for_nothing(desk: AdminClient, world: World) -> None:
    with CaptureQueriesContext(connection) as found:
        desk.rows("evolution_outcome", state="pending")
    counts = [query["sql"] for query in found if "COUNT(" in query["sql"]]
    assert len(counts) == 1


@pytest.mark.parametrize("model", ["evolution_outcome", "playbooks_version"])
def test_long_texts_are_left_out_of_a_list(model: str, desk: AdminClient, world: World) -> None:
    with CaptureQueriesContext(connection) as found:
        desk.rows(model)
    sql = " ".join(query["sql"] for query in found)
    assert '"reasoning_trace"' not in sql
    assert '"text"' not in sql
    assert Playbook.objects.exists()
