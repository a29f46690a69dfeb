"""Random walks over deltas, versions, rollback, clone, import and edits on old bases.

At every step: the records replay byte for byte, counters are base plus votes, numbers never go
back, no bullet is lost, and the text is the rendering of the bullets. A short walk is part of
every run and the same each time; `ACE_STATE_STEPS=200000` makes it a nightly one, of others, and
prints how many steps it took.
"""

import os
from dataclasses import replace
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from playbooks.document.budget import collapses
from playbooks.document.deltas import apply_operations, replay
from playbooks.document.operations import APPLIED, Policy, Record, Result
from playbooks.document.sections import DEFAULT_SECTIONS
from playbooks.document.state import Snapshot, State, closure, merge_survivor, merged_ids, recounted
from playbooks.document.state_diff import (
    build_initial_state,
    bullets_for_clone,
    bullets_from_snapshots,
    change_state,
)
from playbooks.document.text import (
    BULLET_LINE,
    agent_view,
    make_id,
    normal_text,
    number_of,
    parse,
    render,
    render_for_agents,
)
from tests.playbooks.random_operations import SKETCHES, Sketch

STEPS = int(os.environ.get("ACE_STATE_STEPS", "0"))
"""How many steps a nightly run takes at least; 0 is the short run."""
PEOPLE = Policy(machine=False)


class Walk(RuleBasedStateMachine):
    """One playbook as plain values, and all of its versions."""

    steps: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.start(Result(State(DEFAULT_SECTIONS), ()))

    def start(self, result: Result) -> None:
        """A new playbook: version 1 is explained by its own records."""
        self.state = State(result.state.sections)
        self.texts = [render(self.state.document())]
        self.snapshots: list[dict[str, Snapshot]] = [{}]
        self.changed: list[set[str]] = [set()]
        self.publish(result)

    def publish(self, result: Result) -> None:
        """The next version: its records have to tell the whole difference, in order."""
        before = {name: b.snapshot() for name, b in self.state.bullets.items()}
        after = {name: b.snapshot() for name, b in result.state.bullets.items()}
        self.check_records(before, after, result.records)
        document = parse(self.texts[-1], sections=result.state.sections)
        text = render(result.state.document())
        assert render(replay(document, result.records)) == text
        assert result.state.next_number >= self.state.next_number
        assert after.keys() >= before.keys()
        changed = {name for name in after if face(before.get(name)) != face(after[name])}
        self.state = result.state
        self.texts.append(text)
        self.snapshots.append(after)
        self.changed.append(changed)

    def check_records(
        self,
        before: dict[str, Snapshot],
        after: dict[str, Snapshot],
        records: tuple[Record, ...],
    ) -> None:
        """Every applied record starts where the one before it ended; nothing else has changed."""
        now = dict(before)
        assert [record.index for record in records] == list(range(len(records)))
        for record in records:
            if record.status == APPLIED:
                assert record.before == now.get(record.bullet_id)
                assert record.after is not None
                now[record.bullet_id] = record.after
            else:
                assert record.reason_code
        assert now == after

    def apply(self, sketches: list[Sketch], policy: Policy) -> Result:
        Walk.steps += 1
        ids = list(self.state.bullets)
        return apply_operations(self.state, [sketch.on(ids) for sketch in sketches], policy)

    @rule(sketches=SKETCHES)
    def a_person_edits(self, sketches: list[Sketch]) -> None:
        self.publish(self.apply(sketches, PEOPLE))

    @rule(
        sketches=SKETCHES,
        age=st.integers(0, 3),
        budget=st.sampled_from([16_000, 16_000, 400, 150]),
        uses=st.sampled_from([0, 25]),
    )
    def a_machine_evolves_an_old_base(
        self, sketches: list[Sketch], age: int, budget: int, uses: int
    ) -> None:
        """What people changed since the base is theirs: text, section and status stay."""
        meanwhile = set().union(*self.changed[len(self.changed) - age :]) if age else set()
        policy = Policy(
            machine=True,
            changed_since_base=frozenset(meanwhile),
            max_adds={"": 3},
            token_budget=budget,
            uses=dict.fromkeys(self.state.bullets, uses),
        )
        before = self.state
        result = self.apply(sketches, policy)
        operated = [r for r in result.records if r.status == APPLIED and r.reason_code != "budget"]
        for record in operated:
            if record.type in {"UPDATE", "MERGE", "REMOVE"}:
                assert record.bullet_id not in meanwhile
                assert not before.bullets[record.bullet_id].pinned
        if not collapses(before, result.state):
            self.publish(result)

    @rule(back=st.integers(0, 30))
    def a_person_rolls_back(self, back: int) -> None:
        Walk.steps += 1
        number = 1 + back % (len(self.texts) - 1)
        past = {**dict.fromkeys(self.state.bullets), **self.snapshots[number]}
        then = bullets_from_snapshots(self.state, past)
        self.publish(change_state(self.state, then, reason="Rolled back."))
        assert faces(self.texts[-1]) == faces(self.texts[number])

    @rule(way=st.sampled_from(["import", "clone"]))
    def it_goes_on_as_a_copy(self, way: str) -> None:
        Walk.steps += 1
        if way == "import":
            self.export_and_import()
        else:
            self.clone()

    def export_and_import(self) -> None:
        text = self.texts[-1]
        assert all(BULLET_LINE.fullmatch(line) for line in text.split("\n") if line[:1] == "[")
        result = build_initial_state(parse(text), reason="Imported.")
        assert render(result.state.document()) == text
        self.start(result)

    def clone(self) -> None:
        empty = State(self.state.sections, next_number=self.state.next_number)
        result = change_state(empty, bullets_for_clone(self.state), reason="Cloned.")
        assert result.state.next_number == self.state.next_number
        assert render(result.state.document()) == self.texts[-1]
        self.start(result)

    @invariant()
    def counters_are_base_plus_votes(self) -> None:
        merged = merged_ids(self.state.bullets.values())
        for bullet in self.state.active():
            members = [self.state.bullets[name] for name in closure(merged, bullet.id)]
            assert recounted(bullet, members) == bullet

    @invariant()
    def numbers_are_unique_and_never_used_again(self) -> None:
        numbers = [number_of(name) for name in self.state.bullets]
        assert len(set(numbers)) == len(numbers)
        assert max(numbers, default=0) < self.state.next_number
        slugs = {section.slug for section in self.state.sections}
        assert all(name.partition("-")[0] in slugs for name in self.state.bullets)

    @invariant()
    def the_text_is_the_rendering_of_the_bullets(self) -> None:
        document, text = self.state.document(), self.texts[-1]
        assert render(document) == text
        assert parse(text, sections=self.state.sections) == document
        assert agent_view(text) == render_for_agents(document)

    @invariant()
    def no_advice_is_active_twice(self) -> None:
        texts = [normal_text(bullet.content) for bullet in self.state.active()]
        assert len(set(texts)) == len(texts)

    @invariant()
    def a_redirect_ends_at_a_bullet_that_is_not_merged(self) -> None:
        for name, bullet in self.state.bullets.items():
            end = merge_survivor(self.state.bullets, name)
            assert end is not None
            assert end.status != "merged"
            assert (bullet.status == "merged") == bool(bullet.merged_into)


def face(snapshot: Snapshot | None) -> tuple[object, ...] | None:
    """What a person reads of a bullet."""
    if snapshot is None:
        return None
    return tuple(snapshot[name] for name in ("content", "section", "status"))


def faces(text: str) -> list[tuple[str, str, str]]:
    return [(b.id, b.section, b.content) for b in parse(text).bullets]


def walk(machine: type[RuleBasedStateMachine], *, examples: int, length: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=length,
            deadline=None,
            database=None,
            derandomize=not STEPS,
            # A long walk takes minutes to shorten; its seed is printed, and it can be repeated.
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.timeout(0 if STEPS else 120)
def test_any_sequence_of_operations_keeps_the_invariants(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Walk.steps = 0
    walk(Walk, examples=40, length=25)
    while Walk.steps < STEPS:
        walk(Walk, examples=200, length=50)
    with capsys.disabled():
        if STEPS:
            print(f"\n{Walk.steps} steps")  # noqa: T201 - the point of the nightly run
    assert Walk.steps > 500


def test_a_broken_rule_would_be_found() -> None:
    """The walk is worth something: a state whose counters are wrong does not pass."""
    walked = Walk()
    walked.start(build_initial_state(parse(f"## OTHERS\n{LINE}\n"), reason=""))
    (bullet,) = walked.state.bullets.values()
    walked.state = replace(walked.state, bullets={bullet.id: replace(bullet, helpful=7)})
    with pytest.raises(AssertionError):
        walked.counters_are_base_plus_votes()
    with pytest.raises(AssertionError):
        walked.the_text_is_the_rendering_of_the_bullets()


LINE = f"[{make_id(DEFAULT_SECTIONS[0], 7)}] helpful=1 harmful=0 :: Advice."
