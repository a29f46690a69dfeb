"""Concurrent edits of one playbook: consecutive versions, nothing lost."""

import pytest

from accounts.models import User
from core.security.scopes import Principal
from playbooks.document.operations import Operation
from playbooks.models import Playbook
from playbooks.services.editing import edit_playbook
from playbooks.starters.loader import load_starters
from tests.harness.concurrency import run_concurrently
from tests.harness.history import verify_playbook

pytestmark = [pytest.mark.databases, pytest.mark.django_db(transaction=True)]
TEXTS = ["Ask why.", "Draw it.", "Name the unit.", "Round last.", "Sleep on it.", "Use a queue."]


def test_concurrent_edits_are_consecutive_versions_and_lose_no_bullet(
    alice: User, playbook: Playbook
) -> None:
    def add(number: int) -> None:
        row = Playbook.objects.get(pk=playbook.pk)
        operation = Operation("ADD", content=TEXTS[number])
        edit_playbook(playbook=row, by=Principal.of(alice), operations=[operation])

    run_concurrently(len(TEXTS), add)
    numbers = playbook.versions.order_by("number").values_list("number", flat=True)
    assert list(numbers) == list(range(1, len(TEXTS) + 2))
    contents = playbook.bullets.filter(status="active").values_list("content", flat=True)
    assert set(contents) >= set(TEXTS)
    assert verify_playbook(playbook) == []


def test_concurrent_votes_of_two_people_both_count(
    alice: User, charlie: User, playbook: Playbook
) -> None:
    def vote(number: int) -> None:
        row = Playbook.objects.get(pk=playbook.pk)
        by = Principal.of((alice, charlie)[number])
        tag = Operation("TAG", id="str-00001", tag="helpful")
        edit_playbook(playbook=row, by=by, operations=[tag])

    run_concurrently(2, vote)
    assert playbook.bullets.get(public_id="str-00001").helpful == 4


def test_two_processes_loading_starters_create_each_once() -> None:
    run_concurrently(2, lambda _: load_starters())
    names = list(Playbook.objects.starters().values_list("name", flat=True))
    assert len(names) == len(set(names)) >= 3
    assert [verify_playbook(row) for row in Playbook.objects.all()] == [[]] * len(names)
