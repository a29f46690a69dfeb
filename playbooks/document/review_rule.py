"""Which texts of machines, keys and apps are held for review before agents read them. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from playbooks.document.content_safety import new_hazards
from playbooks.document.text import content_hash, normal_text

RISKY, ALL, NONE = "risky", "all", "none"
PENDING, APPROVED, DECLINED = "pending", "approved", "declined"
CREDENTIAL, LEAK = "held_credential", "held_leak"
LEAST_TARGET = 4
"""Characters of an answer that tells; shorter ones are in texts by chance."""


@dataclass(frozen=True)
class Review:
    """`policy`: risky (what find_hazards names), all, or none, which still holds credentials.

    `decided`: the state of each text that was held before, by content hash. `sources`: for each
    outcome id who reported it; `author`: the key or app that edits; `taught`: how many texts each
    of them changed in the last day, `cap`: how many one may. `targets`: the answers of cases.
    """

    policy: str = NONE
    decided: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    author: str = ""
    taught: Mapping[str, int] = field(default_factory=dict)
    cap: int = 0
    targets: Collection[str] = ()

    def hold_reasons(
        self, text: str, *, known: Iterable[str], sources: Iterable[str], now: Mapping[str, int]
    ) -> tuple[str, ...]:
        """Why `text` is held, as reason codes; empty when it is not.

        `known` are the texts that it replaces, whose hazards are not new. `now` counts the texts
        that each source changed in this run.
        """
        found = {f"held_{kind}" for kind, _ in new_hazards(text, known)}
        if self.leaks(text):
            found.add(LEAK)
        if self.policy == NONE:
            return tuple(sorted(found & {CREDENTIAL, LEAK}))
        if any(self.taught.get(who, 0) + now.get(who, 0) >= self.cap for who in sources):
            found.add("held_cap")
        if self.policy == ALL:
            found.add("held_all")
        return tuple(sorted(found, key=_weight))

    def leaks(self, text: str) -> bool:
        """Whether the text holds the answer of a case, as whole words."""
        plain, targets = normal_text(text), map(normal_text, self.targets)
        return any(
            re.search(rf"(?<!\w){re.escape(target)}(?!\w)", plain)
            for target in targets
            if len(target) >= LEAST_TARGET
        )

    def sources_of(self, outcome_ids: Iterable[str]) -> set[str]:
        """The key or app that edits, else the known reporters of these outcomes."""
        if self.author:
            return {self.author}
        return {self.sources[outcome] for outcome in outcome_ids if outcome in self.sources}

    def needs_person(self, text: str) -> bool:
        """True for a text that only a person may bring back: held here, and never approved."""
        why = self.hold_reasons(text, known=(), sources=(), now={})
        return bool(why) and self.state_of(text) != APPROVED

    def state_of(self, text: str) -> str:
        """The state of the review item with this text; empty when there is none."""
        return self.decided.get(content_hash(text), "")


def _weight(code: str) -> tuple[bool, str]:
    """Sorts reasons about the text itself before those about its source or policy."""
    return code in {"held_cap", "held_all"}, code
