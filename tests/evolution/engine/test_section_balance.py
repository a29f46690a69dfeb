"""Room is made by usefulness: a playbook that stays full keeps the balance of its sections."""

from collections import Counter
from dataclasses import replace

import pytest

from playbooks.document.deltas import apply_operations
from playbooks.document.operations import Operation, Policy
from playbooks.document.sections import DEFAULT_SECTIONS
from playbooks.document.state import BulletState, State

BULLETS, ADDED, USES, POINTS = 400, 4, 5, 0.05
KEYS = [section.key for section in DEFAULT_SECTIONS]


def shares(state: State) -> dict[str, float]:
    counted = Counter(bullet.section for bullet in state.active())
    return {key: counted[key] / counted.total() for key in KEYS}


def grown(evolutions: int) -> tuple[float, int]:
    """The most that any section's share ever moved, and how many bullets left.

    Lessons come evenly, and each is found helpful five times: all are worth the same.
    """
    bullets = {}
    for n in range(1, BULLETS + 1):
        section = DEFAULT_SECTIONS[n % len(KEYS)]
        one = BulletState(f"{section.slug}-{n:05d}", section.key, text(n), helpful=USES)
        bullets[one.id] = replace(one, base_helpful=USES)
    state = replace(State(DEFAULT_SECTIONS, bullets), next_number=BULLETS + 1)
    before, number, new, moved = shares(state), BULLETS, list[str](), 0.0
    for _ in range(evolutions):
        operations = [
            Operation("TAG", id=name, tag="helpful", source="rules", outcome_ids=(f"{name}-{n}",))
            for name in new
            for n in range(USES)
        ]
        for _ in range(ADDED):
            number += 1
            key = KEYS[number % len(KEYS)]
            operations.append(Operation("ADD", section=key, content=text(number)))
        policy = Policy(machine=True, token_budget=4_700, max_bytes=10_000_000)
        after = apply_operations(state, operations, policy).state
        new = [name for name in after.bullets if name not in state.bullets]
        state, now = after, shares(after)
        moved = max(moved, *(abs(now[key] - before[key]) for key in KEYS))
    return moved, number - len(list(state.active()))


def text(number: int) -> str:
    return f"Advice {number} says {number * 7919 % 10_007} of part {number * 31 % 997}."


def assert_balanced(evolutions: int) -> None:
    moved, gone = grown(evolutions)
    assert gone > evolutions
    assert moved <= POINTS


def test_sections_keep_their_shares_while_the_playbook_is_full() -> None:
    assert_balanced(40)


@pytest.mark.nightly
def test_sections_keep_their_shares_over_three_hundred_evolutions() -> None:
    assert_balanced(300)
