"""Excerpts of a large playbook for a prompt, so that the cost of a call stays bounded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from evolution.engine.prompt_text import fenced_block, playbook_block
from playbooks.document.similarity import WordIndex
from playbooks.document.text import Bullet, Document, agent_line, estimate_tokens, render_for_agents

REFLECTOR_TOKENS = 800
"""Up to here the Reflector reads the whole agent view, beyond it the relevant bullets."""
CURATOR_TOKENS = 8_000
"""Up to here the Curator reads the whole agent view, beyond it an index and some in full."""
INDEX_SHARE = 0.6
"""Of the Curator's tokens, at most; what the index leaves is for bullets in full."""
INDEX_WORDS = (12, 8, 5, 3, 1)
"""First words of a bullet in the index: as many as fit."""
WHOLE_PLAYBOOK_NOTE = "All bullets are shown in full above."


@dataclass(frozen=True)
class PlaybookView:
    """A playbook as a prompt shows it. `read`: ids shown in full; `full_text`: those beside an
    index, empty when there is none."""

    block: str
    full_text: str
    read: frozenset[str]


def harmful_bullets(document: Document) -> list[str]:
    """Bullets that have harmed at least once, and no less often than they have helped."""
    return [b.id for b in document.bullets if b.harmful and b.harmful >= b.helpful]


def relevant_bullets(document: Document, query: str) -> list[str]:
    """Ids of the bullets that have words in common with the query, the closest first."""
    return _index(document).rank(query)


@lru_cache(maxsize=4)
def _index(document: Document) -> WordIndex:
    # One index for all reflections of a job: they ask about the same document.
    return WordIndex({bullet.id: bullet.content for bullet in document.bullets})


def excerpt(document: Document, query: str, *, besides: Sequence[str], tokens: int) -> str:
    """The whole agent view if it fits, else the bullets closest to the query, in their sections.

    `besides`: ids that the prompt shows elsewhere; they are left out where space is short.
    """
    if estimate_tokens(render_for_agents(document)) <= tokens:
        return playbook_block(document, tokens=tokens)
    wanted = [key for key in relevant_bullets(document, query) if key not in set(besides)]
    headings = estimate_tokens(render_for_agents(Document(document.sections, ())))
    shown = _that_fit(document, wanted, tokens - headings)
    part = Document(document.sections, tuple(b for b in document.bullets if b.id in shown))
    left_out = len(document.bullets) - len(shown)
    note = f"[… {left_out} more bullets, which have less to do with this outcome …]"
    return fenced_block("PLAYBOOK", f"{render_for_agents(part).strip()}\n{note}")


def curator_view(document: Document, wanted: Iterable[str], *, tokens: int) -> PlaybookView:
    """The whole agent view if it fits `tokens`, else an index of all and `wanted` ids in full.

    The index comes first: it stays the same for as long as the playbook does. `wanted` goes from
    the most to the least important; what does not fit stays in the index only.
    """
    if estimate_tokens(render_for_agents(document)) <= tokens:
        every = frozenset(bullet.id for bullet in document.bullets)
        return PlaybookView(playbook_block(document, tokens=tokens), "", every)
    index = playbook_block(_index_of(document, tokens), tokens=int(tokens * INDEX_SHARE))
    shown = _that_fit(document, wanted, tokens - estimate_tokens(index))
    lines = [
        agent_line(bullet.id, bullet.content) for bullet in document.bullets if bullet.id in shown
    ]
    return PlaybookView(
        index, fenced_block("BULLETS", "\n".join(lines) or "(none)"), frozenset(shown)
    )


def _index_of(document: Document, tokens: int) -> Document:
    """The document with the first words of each bullet; as many words as fit."""
    short = document
    for words in INDEX_WORDS:
        bullets = tuple(
            Bullet(bullet.id, bullet.section, _first_words(bullet.content, words))
            for bullet in document.bullets
        )
        short = Document(document.sections, bullets)
        if estimate_tokens(render_for_agents(short)) <= tokens * INDEX_SHARE:
            break
    return short


def _first_words(content: str, count: int) -> str:
    words = content.split(maxsplit=count)
    return content if len(words) <= count else f"{' '.join(words[:count])[: 12 * count]} …"


def _that_fit(document: Document, wanted: Iterable[str], tokens: int) -> set[str]:
    """The first of the wanted ids that fit together; one that is too long is skipped."""
    bullets, shown = document.by_id(), set[str]()
    for key in wanted:
        if key not in bullets or key in shown:
            continue
        cost = estimate_tokens(agent_line(key, bullets[key].content) + "\n")
        if cost <= tokens:
            shown.add(key)
            tokens -= cost
    return shown
