"""Ten sources report on one playbook, and one of them lies whenever it can.

The liar teaches wrong advice, praises it, and blames good advice that it cites. Honest sources
cite what they used: wrong advice fails them, and most say so. The Curator uses its rights: it asks
to remove whatever was blamed.
"""

import random
from collections import Counter
from dataclasses import dataclass, field, replace

from playbooks.document.deltas import apply_operations
from playbooks.document.operations import APPLIED, Operation, Policy, Result
from playbooks.document.review_rule import Review
from playbooks.document.sections import DEFAULT_SECTIONS
from playbooks.document.state import BulletState, State

SOURCES = [f"key:{n}" for n in range(10)]
LIAR = SOURCES[0]
BATCH, CITED = 5, 5
NOTICED, MISTAKEN, TEACHING = 0.6, 0.02, 0.7
"""How often an honest source blames wrong advice that failed it, good advice by mistake, and how
often it teaches something. The liar teaches three things in every report."""


@dataclass
class Simulation:
    """The playbook, and what the sources did to it."""

    seed: int
    mistaken: float = 0  # how often an honest source blames good advice
    by_source: bool = True
    state: State = field(default_factory=lambda: first_state())
    reports: int = 0
    lost: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def run(self, evolutions: int) -> "Simulation":
        for _ in range(evolutions):
            self._evolve()
        return self

    @property
    def wrong_share(self) -> float:
        active = list(self.state.active())
        return sum(is_wrong(b) for b in active) / len(active)

    def _evolve(self) -> None:
        operations: list[Operation] = []
        sources: dict[str, str] = {}
        for _ in range(BATCH):
            self.reports += 1
            outcome, who = f"o{self.reports}", self.chance.choice(SOURCES)
            sources[outcome] = who
            operations += self._report(outcome, who)
        blamed = {op.id for op in operations if op.tag == "harmful"}
        operations += [Operation("REMOVE", id=name, reason="It was blamed.") for name in blamed]
        policy = Policy(
            machine=True,
            max_adds=dict.fromkeys(sources, 1 if self.by_source else 3),
            review=Review(sources=sources if self.by_source else {}),
            token_budget=1_000_000,
            max_bytes=10_000_000,
        )
        self._keep(apply_operations(self.state, operations, policy))

    def _report(self, outcome: str, who: str) -> list[Operation]:
        active = list(self.state.active())
        cited = self.chance.sample(active, CITED)
        if who == LIAR:
            own = [b for b in active if is_wrong(b)]
            cited += self.chance.sample(own, min(len(own), CITED))
        tags = {bullet.id: self._tag(bullet, who) for bullet in cited}
        kind, many = ("Wrong", 3) if who == LIAR else ("Good", self.chance.random() < TEACHING)
        votes = [
            Operation("TAG", id=name, tag=tag, source="rules", outcome_ids=(outcome,))
            for name, tag in tags.items()
        ]
        lessons = (f"{kind} advice {self.reports}, part {n}." for n in range(many))
        return votes + [Operation("ADD", content=text, outcome_ids=(outcome,)) for text in lessons]

    def _tag(self, bullet: BulletState, who: str) -> str:
        if who == LIAR:
            return "helpful" if is_wrong(bullet) else "harmful"
        if is_wrong(bullet):
            return "harmful" if self.chance.random() < NOTICED else "neutral"
        return "harmful" if self.chance.random() < self.mistaken else "helpful"

    def _keep(self, result: Result) -> None:
        for record in result.records:
            if record.type == "REMOVE" and record.status == APPLIED:
                kind = "wrong" if is_wrong(self.state.bullets[record.bullet_id]) else "good"
                self.lost[kind] += 1
        self.state = result.state


def first_state() -> State:
    texts = [f"Good advice to begin with, number {n}." for n in range(30)]
    bullets = [
        BulletState(f"str-{n:05d}", DEFAULT_SECTIONS[0].key, text)
        for n, text in enumerate(texts, start=1)
    ]
    return replace(State(DEFAULT_SECTIONS, {b.id: b for b in bullets}), next_number=31)


def is_wrong(bullet: BulletState) -> bool:
    return bullet.content.startswith("Wrong")
