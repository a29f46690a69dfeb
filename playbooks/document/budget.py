"""Size limits of a playbook, and how much a machine may take away."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from playbooks.document.state import UNKNOWN, BulletState, State, to_document_bullet
from playbooks.document.text import ace_line, agent_line, agent_view, estimate_tokens, number_of

EVIDENCE_VOTES = 3
EVIDENCE_SOURCES = 2
SURE_SOURCES, SURE_VOTES = 3, 4
MIN_USES = 5
NEVER_CITED_USES = 20
# A machine may take at most one fifth: the guard is literal, so of 3 bullets it takes none.
LOSS_DIVISOR = 5


@dataclass(frozen=True)
class Sizes:
    """`chars` of the agent view (what tokens are estimated from), `bytes` of the ACE text."""

    chars: int = 0
    bytes: int = 0

    def __add__(self, other: "Sizes") -> "Sizes":
        return Sizes(self.chars + other.chars, self.bytes + other.bytes)

    def __sub__(self, other: "Sizes") -> "Sizes":
        return Sizes(self.chars - other.chars, self.bytes - other.bytes)

    @property
    def tokens(self) -> int:
        return (self.chars + 3) // 4


def size_of(bullet: BulletState) -> Sizes:
    """What an active bullet adds to the texts; nothing when it is retired or merged."""
    if not bullet.is_active:
        return Sizes()
    line = ace_line(to_document_bullet(bullet))
    return Sizes(len(agent_line(bullet.id, bullet.content)) + 1, len(line.encode()) + 1)


def size_of_text(text: str) -> Sizes:
    """Of an ACE text that we rendered."""
    return Sizes(len(agent_view(text)), len(text.encode()))


def is_harmful(bullet: BulletState) -> bool:
    """True with enough evidence for a machine: harmful > helpful since the last change of meaning.

    Three sources blame it; or two do, it was judged four times, and nobody found it helpful: a
    liar and one honest mistake are two sources as well. Where votes name none (imported counters,
    trainings) it takes 3 votes, of which each harmful one is a source of its own.
    """
    helpful, harmful = bullet.standing
    if harmful <= helpful:
        return False
    sources = _harmful_sources(bullet)
    if all(who.startswith(UNKNOWN) for who in bullet.harmful_by):
        return sources >= EVIDENCE_SOURCES and helpful + harmful >= EVIDENCE_VOTES
    seldom = helpful or harmful + bullet.neutral < SURE_VOTES
    return sources >= (SURE_SOURCES if seldom else EVIDENCE_SOURCES)


def _harmful_sources(bullet: BulletState) -> int:
    return min(bullet.base_harmful + len(bullet.harmful_by), bullet.standing[1])


def retirement_order(
    bullets: Iterable[BulletState], uses: Mapping[str, int], *, touched: set[str]
) -> list[BulletState]:
    """Bullets to retire over budget, first to go first; never pinned, touched or used < 5 times.

    Imported counters are uses too. Harmful ones, then the lowest helpful - 2 x harmful. A bullet
    without any vote was never cited: it counts as 0 there, and only from 20 uses on.
    """

    def may_leave(bullet: BulletState) -> bool:
        if not bullet.is_active or bullet.pinned or bullet.id in touched:
            return False
        cited = bullet.helpful + bullet.harmful + bullet.neutral > 0
        used = uses.get(bullet.id, 0) + bullet.base_helpful + bullet.base_harmful
        return used >= (MIN_USES if cited else NEVER_CITED_USES)

    def rank(bullet: BulletState) -> tuple[bool, int, int]:
        # One source alone pushes a bullet down once, however often it blames it.
        helpful, harmful = bullet.standing
        blame = harmful if _harmful_sources(bullet) > 1 else min(harmful, 1)
        return (not is_harmful(bullet), helpful - 2 * blame, number_of(bullet.id))

    return sorted(filter(may_leave, bullets), key=rank)


def collapses(before: State, after: State) -> bool:
    """True when more than 20 % of the active bullets, or of their tokens, would be lost.

    Bullets are counted by id, so new ones do not make up for those that leave, merged ones
    included; of tokens it is the sum that counts.
    """
    lost = sum(1 for b in before.active() if not after.bullets[b.id].is_active)
    if lost * LOSS_DIVISOR > sum(1 for _ in before.active()):
        return True
    had, has = (
        estimate_tokens("".join(agent_line(b.id, b.content) for b in state.active()))
        for state in (before, after)
    )
    return (had - has) * LOSS_DIVISOR > had
