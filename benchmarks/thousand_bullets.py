"""`python -m benchmarks.thousand_bullets`: one evolution's work on a playbook of 1,000 bullets.

Parse the text, render both views, apply a delta of 20 operations (each ADD is compared with all
that is there), and look for duplicates among all pairs. Prints the median of each, in milliseconds
of one core, and their sum; the target is 150. No database and no model.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable

from playbooks.document.deltas import apply_operations
from playbooks.document.operations import Operation, Policy
from playbooks.document.sections import DEFAULT_SECTIONS
from playbooks.document.similarity import alike_pairs, content_words
from playbooks.document.state import BulletState, State
from playbooks.document.text import (
    Bullet,
    Document,
    make_id,
    normal_text,
    parse,
    render,
    render_for_agents,
)

TARGET = 150
WORDS = """
check convert divide round compare write read keep count average balance period rate quarter
month year unit sign scale figure table footnote formula result answer question percent decimal
thousand million currency index query join column filter group window test cache lock retry
timeout queue worker message review commit branch migration schema customer refund invoice
ticket voucher address delivery before after when never always unless because first last each
every
"""


def make_document(count: int, *, seed: int = 1) -> Document:
    """Bullets of 12 to 30 words, one in twenty a near-duplicate of another."""
    words, chance = WORDS.split(), random.Random(seed)  # noqa: S311 - a made-up text, not a secret
    texts: list[str] = []
    for number in range(count):
        if number % 20 == 19:
            texts.append(f"{texts[chance.randrange(number)]} once")
        else:
            texts.append(" ".join(chance.choices(words, k=chance.randint(12, 30))))
    return Document.of(
        DEFAULT_SECTIONS,
        [
            Bullet(make_id(section, number), section.key, text, number % 9, number % 4)
            for number, text in enumerate(texts, start=1)
            for section in [DEFAULT_SECTIONS[number % len(DEFAULT_SECTIONS)]]
        ],
    )


def make_state(document: Document) -> State:
    bullets = {
        b.id: BulletState(
            *(b.id, b.section, b.content),
            helpful=b.helpful,
            harmful=b.harmful,
            base_helpful=b.helpful,
            base_harmful=b.harmful,
        )
        for b in document.bullets
    }
    return State(document.sections, bullets, next_number=len(bullets) + 1)


def make_delta(document: Document) -> list[Operation]:
    """Eight ADDs, six votes, three edits, one merge of two, two removals."""
    ids = [bullet.id for bullet in document.bullets]
    new = make_document(9, seed=2).bullets
    return [
        *(Operation("ADD", section="str", content=bullet.content) for bullet in new[:8]),
        *(Operation("TAG", id=ids[n * 7], tag="helpful", source="s") for n in range(6)),
        *(Operation("UPDATE", id=ids[n * 11 + 1], content=f"Advice {n}.") for n in range(3)),
        Operation("MERGE", id=ids[300], ids=(ids[301],), content=new[8].content),
        *(Operation("REMOVE", id=ids[n], reason="wrong") for n in (500, 501)),
    ]


def median(work: Callable[[], object], *, rounds: int) -> float:
    """Milliseconds of CPU time of one call."""
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        taken.append((time.process_time() - start) * 1_000)
    return statistics.median(taken)


def measure(count: int, *, rounds: int) -> dict[str, float]:
    document = make_document(count)
    text, state, delta = render(document), make_state(document), make_delta(document)
    policy = Policy(machine=False, token_budget=1_000_000, max_bytes=10_000_000)
    texts = {bullet.id: normal_text(bullet.content) for bullet in document.bullets}
    work: dict[str, Callable[[], object]] = {
        "parse": lambda: parse(text),
        "render": lambda: (render(document), render_for_agents(document)),
        f"apply {len(delta)} operations": lambda: apply_operations(state, delta, policy),
        "find duplicates": lambda: len({content_words(text) for text in texts.values()}),
    }
    return {name: median(call, rounds=rounds) for name, call in work.items()}


def measure_wide_search(count: int, *, rounds: int) -> float:
    """Pairs that look alike, for a model to judge."""
    bullets = make_document(count).bullets
    texts = {bullet.id: normal_text(bullet.content) for bullet in bullets}
    return median(lambda: alike_pairs(texts), rounds=rounds)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--bullets", type=int, default=1_000)
    options.add_argument("--rounds", type=int, default=15)
    chosen = options.parse_args()
    found = measure(chosen.bullets, rounds=chosen.rounds)
    for name, taken in found.items():
        print(f"{name:24} {taken:8.1f} ms")
    print(f"{'together':24} {sum(found.values()):8.1f} ms (target {TARGET})")
    wide = measure_wide_search(chosen.bullets, rounds=chosen.rounds)
    print(f"(pairs that look alike, for a model to judge: {wide:.1f} ms)")


if __name__ == "__main__":
    main()
