"""An account is deleted while a worker begins one of its evolutions."""

import threading
from contextlib import suppress

import pytest
from django.db import OperationalError, connection, connections, transaction

from accounts.models import User
from accounts.services.personal_data import delete_account
from billing.models import Plan, QuotaPeriod
from core.errors import NotFound
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.worker.claims import claim_job
from playbooks.models import Playbook
from playbooks.services.settings import archive_playbook, restore_playbook
from tests.factories import make_outcome
from tests.harness.concurrency import is_waiting_for_lock
from tests.harness.plans import set_limits, set_usage
from tests.harness.waiting import wait_until

pytestmark = [pytest.mark.databases, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("is_first", [False, True])
def test_an_account_can_be_deleted_while_its_evolution_starts(
    billing: Plan, playbook: Playbook, alice: User, is_first: bool
) -> None:
    make_outcome(playbook, alice)
    job = trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
    if not is_first:
        set_usage(alice, evolutions_used=1)
    leaving, failed = deletion_of(alice)
    with transaction.atomic():
        assert claim_job(str(job.pk))
        leaving.start()
        wait_until(lambda: is_waiting_for_lock(leaving))
    leaving.join()
    assert not failed
    assert not User.objects.filter(pk=alice.pk).exists()
    assert not QuotaPeriod.objects.exists()


@pytest.mark.parametrize("limited", [True, False], ids=["limit", "no limit"])
def test_restoring_a_playbook_of_a_deleted_account_is_not_found(
    billing: Plan, playbook: Playbook, alice: User, limited: bool
) -> None:
    set_limits(billing, max_playbooks=5 if limited else None)
    archive_playbook(playbook=playbook, by=Principal.of(alice))
    found: list[object] = []

    def bring_back() -> None:
        try:
            restore_playbook(playbook=playbook, by=Principal.of(alice))
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            found.append(type(error))
        connections.close_all()

    restoring = threading.Thread(target=bring_back)
    with transaction.atomic():
        delete_account(user=User.objects.get(pk=alice.pk))
        restoring.start()
        wait_until(lambda: is_waiting_for_lock(restoring))
    restoring.join()
    assert found == [NotFound]


def test_concurrent_work_does_not_block_a_deletion(playbook: Playbook, alice: User) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("one writer at a time: nobody can wait for anybody")
    leaving, failed = deletion_of(alice)
    # In a deadlock the database aborts one of the two: the deletion, if within a second.
    with suppress(OperationalError), transaction.atomic():
        Playbook.objects.select_for_update().get(pk=playbook.pk)
        leaving.start()
        wait_until(lambda: is_waiting_for_lock(leaving))
        User.objects.select_for_update(no_key=True).get(pk=alice.pk)  # the circle is closed
    leaving.join()
    assert not failed
    assert not User.objects.filter(pk=alice.pk).exists()


def deletion_of(user: User) -> tuple[threading.Thread, list[Exception]]:
    """A thread that deletes the account, not started, and the list of its errors."""
    failed: list[Exception] = []

    def leave() -> None:
        try:
            delete_account(user=user)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            failed.append(error)
        connections.close_all()

    return threading.Thread(target=leave), failed
