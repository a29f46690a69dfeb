"""Grow and refine: finds near-duplicates among the active bullets, judges them once, merges.

Growing is cheap: an ADD is compared with what is there as the deltas are applied. Refining looks at
the whole playbook and may ask a model, so it waits until it is worth a call (`is_due`), asks
about all pairs at once, and about a pair of texts only once: the linear cost of refining depends
on all three.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from evolution.engine.llm import AnswerError
from evolution.engine.merge_judge import Judge, Pair, RuleJudge, Verdict
from playbooks.document.operations import Operation
from playbooks.document.similarity import alike_pairs, content_words
from playbooks.document.text import (
    Bullet,
    Document,
    content_hash,
    estimate_tokens,
    normal_text,
    number_of,
    render_for_agents,
)

REFINE_EVERY = 20
"""New bullets since the last refinement after which the next one is due."""
NEARLY_FULL = 0.8
"""Share of the token budget from which on every evolution that finds new bullets refines."""
MAX_PAIRS = 20
"""Pairs that one call judges, most alike first; the rest waits for the next evolution."""
ROOM_DIVISOR = 5
"""Merges take away at most this fraction of bullets and letters: the collapse guard's share."""


class PairKey(NamedTuple):
    """Two bullets with the texts that they had: an edited one makes a new key."""

    first: str
    second: str
    first_hash: str
    second_hash: str

    @classmethod
    def of(cls, pair: Pair) -> "PairKey":
        texts = content_hash(pair.first.content), content_hash(pair.second.content)
        return cls(pair.first.id, pair.second.id, *texts)


@dataclass(frozen=True)
class RefinementInput:
    """A playbook to refine. `refined_to`: bullets with smaller numbers have been compared.

    `pinned` bullets are a person's, and `touched` ones are edited by the same evolution: neither
    is merged. `leaving` of the touched ones are being removed. `always`: after every new bullet
    (the paper's proactive refinement), else lazily.
    """

    document: Document
    token_budget: int
    refined_to: int = 1
    pinned: Collection[str] = ()
    touched: Collection[str] = ()
    leaving: Collection[str] = ()
    always: bool = False


FindPairs = Callable[[Document], Sequence[Pair]]
"""Finds pairs that look alike, most alike first."""
KnownVerdicts = Mapping[PairKey, Verdict | None]
"""What is known about pairs; None: raised earlier and done with, whatever came of it."""
StoreVerdicts = Callable[[Mapping[PairKey, Verdict]], None]
"""Stores verdicts as soon as they are there; stored ones again when they are used."""


@dataclass(frozen=True)
class RefinementResult:
    """Merges to propose; `refined_to` goes up when nothing is left to ask; `problem`: a code."""

    refined_to: int
    operations: list[Operation] = field(default_factory=list)
    problem: str = ""


def is_due(grown: RefinementInput) -> bool:
    """20 new bullets since the last refinement, or any new one `always` or from 80 % full on."""
    new = sum(1 for b in grown.document.bullets if number_of(b.id) >= grown.refined_to)
    if new >= REFINE_EVERY or not new or grown.always:
        return new > 0
    used = estimate_tokens(render_for_agents(grown.document))
    return used >= NEARLY_FULL * grown.token_budget


def refine(
    grown: RefinementInput,
    *,
    find: FindPairs,
    judge: Judge,
    decided: KnownVerdicts,
    keep: StoreVerdicts,
) -> RefinementResult:
    """The merges that are worth proposing, as operations for the delta rules to judge.

    Pairs that were decided on are never raised again, nor those that the guard would not allow even
    alone: they would keep the refinement due for ever. A verdict in `decided` is used as it is.
    A judge that gives no usable answer costs its merges and nothing else: `problem` says why, and
    the next evolution tries again. Raises TransientError and CredentialError, as `evolve` does.
    """
    room = sum(len(bullet.content) for bullet in grown.document.bullets) // ROOM_DIVISOR
    open_pairs = [
        pair
        for pair in find(grown.document)
        if pair.most_lost <= room and _is_open(pair, grown, decided)
    ]
    chosen = choose_pairs(open_pairs, grown, decided)
    verdicts = {key: v for pair in chosen if (v := decided.get(key := PairKey.of(pair)))}
    asked = [pair for pair in chosen if PairKey.of(pair) not in verdicts]
    problem = ""
    if asked:
        try:
            verdicts |= zip(map(PairKey.of, asked), judge.judge(asked), strict=True)
        except AnswerError as error:
            problem = error.code
    if verdicts:
        keep(verdicts)
    merges = [
        merge_operation(pair, v)
        for pair in chosen
        if (v := verdicts.get(PairKey.of(pair))) and v.same
    ]
    refined_to = grown.refined_to
    if not problem and len(chosen) == len(open_pairs):
        refined_to = max((number_of(b.id) for b in grown.document.bullets), default=0) + 1
    return RefinementResult(refined_to, merges, problem)


def _is_open(pair: Pair, grown: RefinementInput, decided: KnownVerdicts) -> bool:
    """Not decided on yet, or decided that it is the same and not published so far."""
    if {pair.first.id, pair.second.id} & set(grown.pinned):
        return False
    key = PairKey.of(pair)
    if key not in decided:
        return True
    verdict = decided[key]
    return verdict is not None and verdict.same


def choose_pairs(
    pairs: Sequence[Pair], grown: RefinementInput, decided: KnownVerdicts
) -> list[Pair]:
    """The pairs to settle now: paid ones first, each bullet once, as many as the guard allows.

    What is asked can then also be done, whatever the judge's text: no verdict is thrown away.
    """
    bullets = grown.document.bullets
    bullets_left = len(bullets) // ROOM_DIVISOR - len(set(grown.leaving))
    letters_left = sum(len(b.content) for b in bullets) // ROOM_DIVISOR
    letters_left -= sum(len(b.content) for b in bullets if b.id in grown.leaving)
    taken, chosen = set(grown.touched), list[Pair]()
    for pair in sorted(pairs, key=lambda pair: PairKey.of(pair) not in decided):
        ids = {pair.first.id, pair.second.id}
        cost = pair.most_lost
        if ids & taken or cost > letters_left or len(chosen) >= min(MAX_PAIRS, bullets_left):
            continue
        taken |= ids
        letters_left -= cost
        chosen.append(pair)
    return chosen


def merge_operation(pair: Pair, verdict: Verdict) -> Operation:
    """The survivor takes the judged text; the delta rules unite votes and sources."""
    return Operation(
        "MERGE",
        id=pair.survivor.id,
        ids=(pair.source.id,),
        content=verdict.content,
        reason=verdict.reason or "Both say the same.",
    )


def touched_bullets(operations: Sequence[Operation]) -> tuple[set[str], set[str]]:
    """The bullets that operations edit, and those of them that leave."""
    edits = [op for op in operations if op.type in {"UPDATE", "MERGE", "REMOVE", "DELETE"}]
    leaving = {op.id for op in edits if op.type in {"REMOVE", "DELETE"}}
    leaving |= {name for op in edits if op.type == "MERGE" for name in op.ids}
    return {name for op in edits for name in (op.id, *op.ids)}, leaving


def judge_and_finder(engine: object) -> tuple[Judge, FindPairs]:
    """The judge and the finder of pairs; only a model judges texts that are merely alike."""
    if isinstance(engine, Judge):
        return engine, find_alike
    return RuleJudge(), find_same


def find_alike(document: Document) -> list[Pair]:
    """Finds pairs by their letters and shared words; no model, about 0.3 s for 1,000 bullets."""
    known = document.by_id()
    texts = {b.id: normal_text(b.content) for b in bullets_by_number(document)}
    return [Pair(known[first], known[second], score) for first, second, score in alike_pairs(texts)]


def find_same(document: Document) -> list[Pair]:
    """Each bullet with the first one that has the same content words, in the same order."""
    first: dict[tuple[str, ...], Bullet] = {}
    pairs = [
        Pair(first.setdefault(content_words(bullet.content), bullet), bullet, 100)
        for bullet in bullets_by_number(document)
    ]
    return [pair for pair in pairs if pair.first is not pair.second]


def bullets_by_number(document: Document) -> list[Bullet]:
    """The bullets in the order in which they were made."""
    return sorted(document.bullets, key=lambda bullet: number_of(bullet.id))
