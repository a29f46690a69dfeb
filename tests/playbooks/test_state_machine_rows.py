"""The same kind of walk through the services and the database: rows, votes, locks, refusals."""

from contextlib import nullcontext
from dataclasses import replace
from typing import ClassVar

import pytest
from django.db import transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from accounts.models import User
from core.errors import Conflict
from core.security.scopes import Principal
from evolution.models import Outcome
from playbooks.document.deltas import apply_operations, new_texts
from playbooks.document.operations import Operation, Policy
from playbooks.document.state_diff import bullets_from_snapshots, change_state
from playbooks.document.text import render
from playbooks.models import Playbook, Version, Vote
from playbooks.services import creation
from playbooks.services.editing import edit_playbook
from playbooks.services.loading import (
    LoadedPlaybook,
    load_part,
    load_past,
    load_state,
    lock_playbook,
    named_bullet_ids,
    version_of,
)
from playbooks.services.publishing import CollapseGuard
from playbooks.services.reading import diff_versions
from playbooks.services.repair import rebuild_playbook
from playbooks.services.rollback import rollback_playbook
from tests.factories import make_playbook, make_user, publish, text_of_playbook
from tests.harness.history import verify_playbook
from tests.playbooks.random_operations import OUTCOMES, SKETCHES, Sketch
from tests.playbooks.test_state_machine import STEPS, walk

pytestmark = pytest.mark.postgres


def records_of(loaded: LoadedPlaybook, operations: list[Operation]) -> object:
    policy = Policy(machine=False, token_budget=600, max_bytes=4_000)
    return apply_operations(loaded.state, operations, policy).records


class RowsWalk(RuleBasedStateMachine):
    """One playbook of rows; what is published is checked against deltas, votes and numbers."""

    steps: ClassVar[int] = 0
    owner: ClassVar[User]

    def __init__(self) -> None:
        super().__init__()
        self.go_on_with(make_playbook(self.owner))

    def go_on_with(self, playbook: Playbook) -> None:
        self.playbook = playbook
        # Rows, not reports: there is a limit on reports an hour.
        first = playbook.current_version
        made = [Outcome(playbook=playbook, version=first, status="success") for _ in OUTCOMES]
        Outcome.objects.bulk_create(made)
        self.outcomes = dict(zip(OUTCOMES, (str(outcome.pk) for outcome in made), strict=True))
        self.number, self.next_number = 1, playbook.next_bullet_number

    def operations(self, sketches: list[Sketch]) -> list[Operation]:
        RowsWalk.steps += 1
        ids = list(self.playbook.bullets.order_by("created_at").values_list("public_id", flat=True))
        return [sketch.on(ids, self.outcomes) for sketch in sketches]

    @property
    def text_hash(self) -> str:
        return version_of(self.playbook, None).text_hash

    @property
    def by(self) -> Principal:
        return Principal.of(self.owner)

    def part(self, operations: list[Operation]) -> LoadedPlaybook:
        named = named_bullet_ids(operations)
        return load_part(self.playbook, named, **new_texts(operations))

    def changes_back_to(self, number: int) -> object:
        loaded, past = load_past(self.playbook, version_of(self.playbook, number))
        wanted = bullets_from_snapshots(loaded.state, past)
        return change_state(loaded.state, wanted, reason="").records

    def changes_by_last_deltas(self, number: int) -> object:
        """The same from all bullets, each as its last delta until then left it."""
        state = load_state(self.playbook).state
        deltas = self.playbook.deltas.applied().filter(version__number__lte=number)
        ordered = deltas.order_by("version__number", "index")
        then = dict(ordered.values_list("bullet_public_id", "after"))
        wanted = bullets_from_snapshots(state, dict.fromkeys(state.bullets) | then)
        return change_state(state, wanted, reason="").records

    @rule(sketches=SKETCHES, age=st.sampled_from([0, 0, 0, 1]))
    def a_person_edits(self, sketches: list[Sketch], age: int) -> None:
        """An edit of an older version than the current one is refused whole."""
        operations = self.operations(sketches) or [Operation("FOO")]
        assert records_of(self.part(operations), operations) == records_of(
            load_state(self.playbook), operations
        )
        expected = self.number - age
        try:
            made = edit_playbook(
                playbook=self.playbook, by=self.by, operations=operations, expected_version=expected
            )
        except Conflict:
            assert age
            return
        assert not age
        assert len(made.deltas) >= len(operations)
        self.number += made.version is not None

    @rule(sketches=SKETCHES, age=st.integers(0, 2))
    def a_machine_evolves_an_old_base(self, sketches: list[Sketch], age: int) -> None:
        operations = [replace(op, source="reflector") for op in self.operations(sketches)]
        base = self.playbook.versions.get(number=max(1, self.number - age))
        try:
            with transaction.atomic():
                lock_playbook(self.playbook)
                made = publish(
                    self.playbook,
                    operations=operations,
                    reason=Version.Reason.EVOLUTION,
                    base=base,
                    machine=True,
                    max_adds={"": 6},
                )
        except CollapseGuard:
            return
        self.number += made.version is not None

    @rule(back=st.integers(0, 9))
    def a_person_rolls_back(self, back: int) -> None:
        RowsWalk.steps += 1
        number = 1 + back % self.number
        assert self.changes_back_to(number) == self.changes_by_last_deltas(number)
        votes = Vote.objects.count()
        by, same = self.by, version_of(self.playbook, number).text_hash == self.text_hash
        with pytest.raises(Conflict, match="Nothing to roll") if same else nullcontext():
            rollback_playbook(playbook=self.playbook, by=by, number=number)
        self.number += not same
        diff = diff_versions(playbook=self.playbook, number=self.number, against=number)
        assert not (diff.added or diff.removed or diff.changed or diff.moved)
        assert Vote.objects.count() == votes

    @rule(way=st.sampled_from(["import", "clone"]))
    def it_goes_on_as_a_copy(self, way: str) -> None:
        RowsWalk.steps += 1
        text = text_of_playbook(self.playbook)
        if way == "import":
            copy = creation.import_playbook(by=self.by, name="Copy", content=text)
        else:
            copy = creation.clone_playbook(playbook=self.playbook, by=self.by)
        assert text_of_playbook(copy) == text
        self.go_on_with(copy)

    @rule()
    def a_repair_finds_nothing_to_mend(self) -> None:
        RowsWalk.steps += 1
        assert rebuild_playbook(playbook=self.playbook) == []

    @invariant()
    def versions_deltas_rows_and_votes_tell_one_story(self) -> None:
        self.playbook = Playbook.objects.select_related("current_version").get(pk=self.playbook.pk)
        assert verify_playbook(self.playbook) == []
        current = self.playbook.current_version
        assert current is not None
        assert current.number == self.number
        assert current.text == render(load_state(self.playbook).state.document())
        assert self.playbook.next_bullet_number >= self.next_number
        self.next_number = self.playbook.next_bullet_number


@pytest.mark.django_db
@pytest.mark.timeout(0 if STEPS else 120)
def test_any_sequence_of_service_calls_keeps_the_invariants(
    capsys: pytest.CaptureFixture[str],
) -> None:
    RowsWalk.owner = make_user("walker@example.org")
    RowsWalk.steps = 0
    walk(RowsWalk, examples=6, length=12)
    while RowsWalk.steps * 100 < STEPS:
        walk(RowsWalk, examples=20, length=25)
    with capsys.disabled():
        if STEPS:
            print(f"\n{RowsWalk.steps} steps through the services")  # noqa: T201 - nightly only
    assert RowsWalk.steps > 40
