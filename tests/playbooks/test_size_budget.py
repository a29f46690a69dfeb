"""Budgets and the collapse guard. No Django, no database."""

from dataclasses import replace

from playbooks.document.budget import collapses
from playbooks.document.deltas import apply_operations
from playbooks.document.operations import Operation, Policy, Result
from playbooks.document.state import State
from playbooks.document.text import estimate_tokens, render, render_for_agents
from tests.playbooks.state_helpers import MACHINE, PEOPLE, run, state_of, verdicts, votes

LINES = [
    "[str-00001] helpful=9 harmful=0 :: Kept because it helped nine times already in the past.",
    "[str-00002] helpful=1 harmful=4 :: Leaves first because it is harmful with enough votes.",
    "[str-00003] helpful=1 harmful=1 :: Leaves second because its score is minus one, lowest.",
    "[str-00004] helpful=0 harmful=0 :: Leaves third because nobody ever cited this old line.",
    "[str-00005] helpful=0 harmful=0 :: Too young to judge, whatever the reason for that is.",
]
FILLER = [
    f"[str-{n:05d}] helpful=50 harmful=0 :: Number {n} is a trusted filler line for the rest."
    for n in range(6, 26)
]
FULL = "## STRATEGIES & INSIGHTS\n" + "\n".join(LINES + FILLER)
USES = dict.fromkeys([line[1:10] for line in LINES + FILLER], 25) | {"str-00005": 19}
ADD = Operation("ADD", section="str", content="A new lesson that is about as long as all others.")


def policy_for(state: State, *, room: int = 0, uses: dict[str, int] | None = None) -> Policy:
    tokens = estimate_tokens(render_for_agents(state.document()))
    known = USES if uses is None else uses
    return Policy(machine=True, token_budget=tokens + room, uses=known)


def left(result: Result) -> list[str]:
    return [r.bullet_id for r in result.records if r.reason_code == "budget"]


def test_over_budget_bullets_are_retired_in_the_documented_order() -> None:
    state = state_of(FULL)
    policy = policy_for(state)
    gone: list[str] = []
    for number in range(4):
        add = replace(ADD, content=f"{ADD.content} Lesson {number} of {'abcd'[number] * 30}.")
        result = apply_operations(state, [add], policy)
        gone += left(result)
        state = result.state
    assert gone[:3] == ["str-00002", "str-00003", "str-00004"]
    assert "str-00005" not in gone


def test_of_equals_the_lower_number_leaves_whatever_its_section() -> None:
    lines = [
        f"## {title}\n[{slug}-{n:05d}] helpful=0 harmful=1 :: Number {n} is as good as others."
        for title, slug, n in (("OTHERS", "misc", 1), ("FORMULAS & CALCULATIONS", "calc", 2))
    ]
    state = state_of("\n".join([*lines, "## STRATEGIES & INSIGHTS", *FILLER]))
    result = apply_operations(
        state, [ADD], policy_for(state, uses={"misc-00001": 9, "calc-00002": 9})
    )
    assert left(result)[0] == "misc-00001"


def full_of_lessons() -> tuple[State, Policy]:
    """A full playbook, from which the bullet 3 has just left for want of room."""
    state = state_of(FULL)
    policy = policy_for(state)
    for number in range(2):
        add = replace(ADD, content=f"{ADD.content} Lesson {number} of {'abcd'[number] * 30}.")
        state = apply_operations(state, [add], policy).state
    assert not state.bullets["str-00003"].is_active
    return state, policy


def test_a_lesson_that_left_for_want_of_room_comes_back_when_it_is_reported_again() -> None:
    state, policy = full_of_lessons()
    again = Operation("ADD", content=state.bullets["str-00003"].content, outcome_ids=("o9",))
    result = apply_operations(state, [again], replace(policy, token_budget=9_000))
    assert [(r.type, r.status, r.reason_code) for r in result.records] == [
        ("RESTORE", "applied", "returned")
    ]
    back = result.state.bullets["str-00003"]
    assert (back.is_active, back.helpful, back.harmful, back.sources) == (True, 1, 1, ("o9",))


def test_a_lesson_that_was_removed_as_harmful_does_not_come_back() -> None:
    state = run(Operation("REMOVE", id="mis-00003", reason="harm")).state
    again = Operation("ADD", content=state.bullets["mis-00003"].content)
    assert verdicts(run(again, state=state)) == [("rejected", "ADD", "retired_duplicate")]


def test_a_version_never_exceeds_its_budget_by_what_is_added() -> None:
    state = state_of(FULL)
    policy = policy_for(state)
    result = apply_operations(state, [ADD], policy)
    view = render_for_agents(result.state.document())
    assert estimate_tokens(view) <= policy.token_budget


def test_what_cannot_fit_waits_for_review_and_nothing_is_retired_for_it() -> None:
    counted = {"helpful=50": "helpful=0", "helpful=9": "helpful=0", "harmful=4": "harmful=2"}
    text = FULL
    for old, new in counted.items():
        text = text.replace(old, new)
    state = state_of(text)
    result = apply_operations(state, [ADD, ADD], policy_for(state, uses={}))
    assert verdicts(result) == [("held", "ADD", "held_full"), ("noop", "ADD", "awaits_review")]
    assert result.state.bullets == state.bullets


def test_imported_counters_are_uses() -> None:
    state = state_of(FULL)
    assert left(apply_operations(state, [ADD], policy_for(state, uses={}))) == ["str-00002"]


def test_room_is_made_within_the_collapse_guard() -> None:
    long = FULL.replace("Leaves first", f"Leaves {'first ' * 100}")
    state = state_of(long)
    result = apply_operations(state, [ADD], policy_for(state))
    assert not collapses(state, result.state)
    assert verdicts(result) == [("held", "ADD", "held_full")]


def test_pinned_touched_and_little_used_bullets_stay() -> None:
    state = run(Operation("PIN", id="str-00002"), state=state_of(FULL), policy=PEOPLE).state
    policy = policy_for(state, uses={**USES, "str-00004": 4})
    result = apply_operations(state, [votes("str-00003", "harmful", "o1"), ADD], policy)
    assert left(result) != []
    assert not {"str-00002", "str-00003", "str-00004"} & set(left(result))


def test_a_person_over_the_budget_can_shorten_but_not_grow() -> None:
    state = state_of(FULL)
    policy = replace(policy_for(state, room=-50), machine=False)
    shorter = Operation("UPDATE", id="str-00001", content="Short.")
    longer = Operation("UPDATE", id="str-00006", content="Longer by quite a lot. " * 20)
    result = apply_operations(state, [shorter, longer, ADD], policy)
    assert [code for _, _, code in verdicts(result)] == ["", "over_budget", "over_budget"]


def test_the_text_has_a_limit_in_bytes_too() -> None:
    state = state_of()
    policy = replace(MACHINE, max_bytes=len(render(state.document()).encode()) + 40)
    euros = Operation("ADD", content="€" * 20)
    assert run(euros, policy=policy).records[0].reason_code == "held_full"


def test_a_lowered_budget_shrinks_a_playbook_by_one_fifth_at_a_time() -> None:
    state = state_of(FULL)
    result = apply_operations(state, [], replace(policy_for(state), token_budget=10))
    assert len(left(result)) == 4
    assert not collapses(state, result.state)


def harmful_lines(count: int, *, harmful: int) -> str:
    return "## OTHERS\n" + "\n".join(
        f"[misc-{n:05d}] helpful=0 harmful={5 if n <= harmful else 0} :: Line {n} of many."
        for n in range(1, count + 1)
    )


def removal(count: int, removed: int) -> tuple[State, State]:
    state = state_of(harmful_lines(count, harmful=removed))
    ids = [f"misc-{n:05d}" for n in range(1, removed + 1)]
    operations = [Operation("REMOVE", id=bullet_id, reason="harm") for bullet_id in ids]
    return state, apply_operations(state, operations, MACHINE).state


def test_more_than_a_fifth_of_the_bullets_is_a_collapse() -> None:
    assert not collapses(*removal(10, 2))
    assert collapses(*removal(10, 3))
    assert collapses(*removal(3, 1))


def test_new_bullets_do_not_make_up_for_lost_ones() -> None:
    before, after = removal(10, 3)
    adds = [Operation("ADD", content=f"Word {word} is new.") for word in ("one", "two", "six")]
    assert collapses(before, apply_operations(after, adds, MACHINE).state)


def test_more_than_a_fifth_of_the_tokens_is_a_collapse() -> None:
    state = state_of(FULL)
    short = [Operation("UPDATE", id=f"str-{n:05d}", content=f"Line {n}.") for n in range(1, 12)]
    assert collapses(state, apply_operations(state, short, MACHINE).state)
    assert not collapses(state, apply_operations(state, short[:2], MACHINE).state)


def test_nothing_lost_is_no_collapse_even_of_nothing() -> None:
    assert not collapses(State(()), State(()))
