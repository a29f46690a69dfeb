"""When a machine's text waits for a person before agents read it. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from playbooks.document.content_safety import new_hazards
from playbooks.document.text import content_hash

RISKY, ALL, NONE = "risky", "all", "none"
PENDING, APPROVED, DECLINED = "pending", "approved", "declined"
CREDENTIAL = "held_credential"


@dataclass(frozen=True)
class Review:
    """`policy`: risky (what find_hazards names), all, or none, which still holds credentials.

    `decided`: the state of each text that was held before, by content hash. `sources`: for each
    outcome id who reported it; `taught`: how many texts each of them changed in the last day,
    `cap`: how many one may.
    """

    policy: str = NONE
    decided: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    taught: Mapping[str, int] = field(default_factory=dict)
    cap: int = 0

    def hold_reasons(
        self, text: str, *, known: Iterable[str], sources: Iterable[str], now: Mapping[str, int]
    ) -> tuple[str, ...]:
        """Why `text` has to wait, as reason codes; empty when it need not.

        `known` are the texts that it takes the place of: what they say already is no news. `now`
        is what each source taught in this very change.
        """
        found = {f"held_{kind}" for kind, _ in new_hazards(text, known)}
        if self.policy == NONE:
            return tuple(found & {CREDENTIAL})
        if any(self.taught.get(who, 0) + now.get(who, 0) >= self.cap for who in sources):
            found.add("held_cap")
        if self.policy == ALL:
            found.add("held_all")
        return tuple(sorted(found, key=_weight))

    def sources_of(self, outcome_ids: Iterable[str]) -> set[str]:
        """Who reported these outcomes, as far as it is known."""
        return {self.sources[outcome] for outcome in outcome_ids if outcome in self.sources}

    def state_of(self, text: str) -> str:
        """What became of this very text when it was held before; empty when it never was."""
        return self.decided.get(content_hash(text), "")


def _weight(code: str) -> tuple[bool, str]:
    """What says more about the text goes first."""
    return code in {"held_cap", "held_all"}, code
