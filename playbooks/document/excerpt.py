"""The most useful bullets of a playbook that fit a limit of tokens."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
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


def take_excerpt(document: Document, *, max_tokens: int, task: str = "") -> Excerpt:
    """The most useful bullets that fit, in their usual order; headings only where one is shown.

    With a `task`, every other one is chosen by the words that it shares with the task. Tokens are
    estimated like everywhere (`estimate_tokens`). A long bullet that does not fit makes room for
    shorter ones that are less useful.
    """
    shown = Document(document.sections, tuple(_fitting(document, task, 4 * max_tokens)))
    keys = {bullet.section for bullet in shown.bullets}
    visible = tuple(section for section in document.sections if section.key in keys)
    ids = {bullet.id for bullet in shown.bullets}
    missing = Counter(bullet.section for bullet in document.bullets if bullet.id not in ids)
    return Excerpt(
        render_for_agents(Document(visible, shown.bullets)),
        tuple(OmittedBullets(s.title, missing[s.key]) for s in document.sections if missing[s.key]),
    )


def usefulness(bullet: Bullet) -> tuple[int, int]:
    """Sorts the most useful first: as the budget of a playbook weighs votes; then the oldest."""
    return (2 * bullet.harmful - bullet.helpful, number_of(bullet.id))


def _by_worth(document: Document, task: str) -> Iterable[Bullet]:
    """The best-voted bullets, and in turn with them those about the task; once each."""
    best = sorted(document.bullets, key=usefulness)
    if not task:
        return best
    bullets = {b.id: b for b in best if usefulness(b)[0] <= 0}
    about = [
        bullets[key] for key in WordIndex({k: b.content for k, b in bullets.items()}).rank(task)
    ]
    in_turn = chain.from_iterable(zip_longest(about, best))
    return dict.fromkeys(bullet for bullet in in_turn if bullet is not None)


def _fitting(document: Document, task: str, room: int) -> list[Bullet]:
    headings = {section.key: len(f"## {section.title}\n\n") for section in document.sections}
    taken: set[str] = set()
    for bullet in _by_worth(document, task):
        cost = len(agent_line(bullet.id, bullet.content)) + 1 + headings[bullet.section]
        if cost <= room:
            room -= cost
            headings[bullet.section] = 0
            taken.add(bullet.id)
    return [bullet for bullet in document.bullets if bullet.id in taken]
