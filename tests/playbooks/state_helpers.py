"""Helpers for states, policies and verdicts; no Django, no database."""

from typing import Any

from playbooks.document.deltas import apply_operations
from playbooks.document.operations import Operation, Policy, Result
from playbooks.document.state import State
from playbooks.document.state_diff import build_initial_state
from playbooks.document.text import parse

PEOPLE = Policy(machine=False)
MACHINE = Policy(machine=True)

TEXT = """\
## STRATEGIES & INSIGHTS
[str-00001] helpful=0 harmful=0 :: Read the failing test before the code.
[str-00002] helpful=0 harmful=0 :: Prefer the smallest change.

## COMMON MISTAKES TO AVOID
[mis-00003] helpful=1 harmful=4 :: Silence the warning.
[mis-00042] helpful=0 harmful=0 :: Guess the signature.

## OTHERS
[misc-00005] helpful=0 harmful=0 :: Say what you did not check.
"""


def state_of(text: str = TEXT) -> State:
    return build_initial_state(parse(text), reason="").state


def run(*operations: Operation, state: State | None = None, policy: Policy = MACHINE) -> Result:
    return apply_operations(state or state_of(), operations, policy)


def verdicts(result: Result) -> list[tuple[str, str, str]]:
    """(status, type, reason code) of each record, in order."""
    return [(r.status, r.type, r.reason_code) for r in result.records]


def verdict(*operations: Operation, **fields: Any) -> tuple[str, str]:
    """(status, reason code) of the last record."""
    last = run(*operations, **fields).records[-1]
    return last.status, last.reason_code


def votes(bullet_id: str, tag: str, *outcomes: str, source: str = "reflector") -> Operation:
    return Operation("TAG", id=bullet_id, tag=tag, source=source, outcome_ids=outcomes)
