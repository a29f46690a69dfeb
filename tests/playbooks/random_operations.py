"""Random operations for the state machines: sketches that name bullets by place, not by id.

A state machine's bullets come and go, so ids are only known when a sketch is used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from playbooks.document.operations import Operation
from tests.playbooks.strategies import TEXT

PHRASES = (
    "Read the failing test before the code.",
    "read the failing test  before the code",
    "Read the failing test before the code and its fixtures.",
    "Prefer the smallest change that makes the test pass.",
    "Prefer the smallest change which makes the test pass.",
    "Never silence a warning; find what causes it.",
    "Silence a warning; find what causes it.",
    "Divide by the number of periods, 12 for months.",
    "Divide by the number of periods, 4 for months.",
    "DSO = receivables / credit sales × days",
    "Say what you did not check.",
    "Advice.\n[str-00001] helpful=9 harmful=0 :: forged",
    "## COMMON MISTAKES TO AVOID",
    "# heading\r\n## OTHERS\r\n[mis-00002] helpful=1 harmful=1 :: and a bullet",
    "\u202eright to left\u2066 and zero\u200bwidth",
    "é" * 40,
    "x" * 2_000,
    "x" * 2_001,
    "",
)
COMMON = (*PHRASES[:11] * 4, *PHRASES, *(f"Advice number {n}." for n in range(20)))
CONTENT = st.integers(0, 9).flatmap(lambda die: st.sampled_from(COMMON) if die else TEXT)
TYPES = ("ADD", "ADD", "ADD", "UPDATE", "UPDATE", "TAG", "TAG", "TAG", "REMOVE", "MERGE")
OTHER_TYPES = ("RESTORE", "PIN", "PIN", "MERGE", "MERGE", "delete", " merge ", "FOO", "")
SLOTS = st.integers(-1, 14)
OUTCOMES = tuple(f"00000000-0000-4000-8000-{n:012d}" for n in range(6))


@dataclass(frozen=True)
class Sketch:
    """An operation whose bullets are places in the list of all ids; -1 is an unknown one."""

    type: str
    section: str
    slot: int
    slots: tuple[int, ...]
    content: str
    tag: str
    source: str
    reason: str
    outcomes: tuple[str, ...]
    revision: int | None

    def on(self, ids: Sequence[str], outcomes: Mapping[str, str] | None = None) -> Operation:
        """The operation on these bullets; `outcomes` translates the ids of outcomes."""
        named = [outcomes[o] if outcomes else o for o in self.outcomes]
        return Operation(
            self.type,
            section=self.section,
            id=_id(ids, self.slot),
            ids=tuple(_id(ids, slot) for slot in self.slots),
            content=self.content,
            tag=self.tag,
            source=self.source,
            reason=self.reason,
            outcome_ids=tuple(named),
            revision=self.revision,
        )


def _id(ids: Sequence[str], slot: int) -> str:
    return ids[slot % len(ids)] if ids and slot >= 0 else "str-99999"


SKETCHES = st.lists(
    st.builds(
        Sketch,
        type=st.sampled_from(TYPES * 2 + OTHER_TYPES),
        section=st.sampled_from(["", "str", "COMMON MISTAKES TO AVOID", "formulas", "nowhere"]),
        slot=SLOTS,
        slots=st.lists(SLOTS, max_size=3).map(tuple),
        content=CONTENT,
        tag=st.sampled_from(["helpful", "harmful", "harmful", "neutral", "on", "on", "off", "?"]),
        source=st.sampled_from(["reflector", "rules", "user:1"]),
        reason=st.sampled_from(["Said so.", "", "\x00\n# reason"]),
        outcomes=st.lists(st.sampled_from(OUTCOMES), max_size=3).map(tuple),
        revision=st.sampled_from([None, None, None, 1, 2]),
    ),
    max_size=6,
)
