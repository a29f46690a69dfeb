"""The most useful bullets of a playbook that fit a limit of tokens."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest

from playbooks.document.similarity import WordIndex
from playbooks.document.text import Bullet, Document, agent_line, number_of, render_for_agents


@dataclass(frozen=True)
class OmittedBullets:
    """How many bullets of one section, by its title, were not shown."""

    section: str
    bullets: int


@dataclass(frozen=True)
class Excerpt:
    """The agent view of some bullets, and what is missing from it, in the order of sections."""

    text: str
    left_out: tuple[OmittedBullets, ...]


class ExcerptIndex:
    """Takes excerpts of one document in the time of what fits; to make it takes that of the whole.

    Tokens are estimated like everywhere (`estimate_tokens`). A long bullet that does not fit makes
    room for shorter ones that are less useful.
    """

    def __init__(self, document: Document) -> None:
        self.sections = document.sections
        self.counts = Counter(bullet.section for bullet in document.bullets)
        self.best = sorted(document.bullets, key=usefulness)
        self.costs = {b.id: len(agent_line(b.id, b.content)) + 1 for b in document.bullets}
        self.least = min(self.costs.values(), default=0)

    def take(self, *, max_tokens: int, task: str = "") -> Excerpt:
        """The most useful bullets that fit, in their usual order; headings only where one is shown.

        With a `task`, every other one is chosen by the words that it shares with the task.
        """
        shown = self._fitting(task, 4 * max_tokens)
        taken = Counter(bullet.section for bullet in shown)
        visible = [section for section in self.sections if taken[section.key]]
        missing = self.counts - taken
        left_out = (OmittedBullets(s.title, missing[s.key]) for s in self.sections)
        text = render_for_agents(Document.of(visible, shown))
        return Excerpt(text, tuple(part for part in left_out if part.bullets))

    @cached_property
    def _about(self) -> tuple[dict[str, Bullet], WordIndex]:
        """What a task can bring in: no bullet that harmed more than it helped."""
        bullets = {b.id: b for b in self.best if usefulness(b)[0] <= 0}
        return bullets, WordIndex({b.id: b.content for b in bullets.values()})

    def _by_worth(self, task: str) -> Iterable[Bullet]:
        """The best-voted bullets, and in turn with them those about the task, before each."""
        if not task:
            return self.best
        bullets, words = self._about
        in_turn = zip_longest((bullets[key] for key in words.rank(task)), self.best)
        return filter(None, chain.from_iterable(in_turn))

    def _fitting(self, task: str, room: int) -> list[Bullet]:
        headings = {section.key: len(f"## {section.title}\n\n") for section in self.sections}
        taken: list[Bullet] = []
        seen: set[str] = set()
        for bullet in self._by_worth(task):
            if room < self.least:
                break
            cost = self.costs[bullet.id] + headings[bullet.section]
            if bullet.id not in seen and cost <= room:
                room -= cost
                headings[bullet.section] = 0
                taken.append(bullet)
            seen.add(bullet.id)
        return taken


def usefulness(bullet: Bullet) -> tuple[int, int]:
    """Sorts the most useful first: as the budget of a playbook weighs votes; then the oldest."""
    return (2 * bullet.harmful - bullet.helpful, number_of(bullet.id))
