"""The ACE method: reflect on every outcome, curate once, return the operations."""

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from evolution.engine.curator import Curation
from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.llm import AnswerError, LLMError
from evolution.engine.reflector import Reflection, ReflectionResult
from playbooks.document.operations import Operation
from playbooks.document.text import Document, find_ids

T = TypeVar("T")


class Engine(Protocol):
    """Reflects and curates: a model, or fixed rules.

    `vote_source` signs the votes. `config_hash` changes with anything that could change an answer:
    prompts, models, limits.
    """

    name: str
    vote_source: str
    prompt_versions: dict[str, str]
    config_hash: str

    def reflect(self, outcome: OutcomeInput, playbook: PlaybookInput) -> ReflectionResult:
        """Study one outcome; called from several threads. Raises an LLMError."""
        ...

    def curate(
        self,
        reflections: Mapping[str, Reflection],
        outcomes: Sequence[OutcomeInput],
        playbook: PlaybookInput,
    ) -> Curation:
        """Decide on operations from all reflections, keyed by outcome id. Raises an LLMError."""
        ...


class Checkpoints(Protocol):
    """Stored answers of a job. Called only on the thread that called `evolve`."""

    def reflections(self) -> dict[str, Reflection]: ...

    def save_reflection(self, outcome_id: str, reflection: Reflection, tokens: int) -> None: ...

    def curation(self) -> Curation | None: ...

    def save_curation(self, curation: Curation) -> None: ...


class NothingReflected(AnswerError):
    """No outcome got a usable reflection; `set_aside` says why, by outcome id."""

    def __init__(self, set_aside: Mapping[str, str]) -> None:
        reasons = "; ".join(sorted(set(set_aside.values())))
        super().__init__("no_reflection", f"No outcome could be reflected on: {reasons}")
        self.set_aside = dict(set_aside)


@dataclass(frozen=True)
class EvolutionResult:
    """Operations in the order to apply, reflections, and outcomes set aside with the reason.

    `refined_to`: of the RefinementResult, None without a refinement.
    """

    operations: list[Operation]
    set_aside: dict[str, str] = field(default_factory=dict)
    reflections: dict[str, Reflection] = field(default_factory=dict)
    refined_to: int | None = None


def evolve(
    *,
    engine: Engine,
    playbook: PlaybookInput,
    outcomes: Sequence[OutcomeInput],
    checkpoints: Checkpoints,
    concurrency: int,
) -> EvolutionResult:
    """Turn outcomes into operations; stored answers are not asked for again.

    An outcome without a usable reflection is set aside and the others go on. Without outcomes
    no call is made. Raises NothingReflected when none is left, AnswerError when the curation
    failed; TransientError and CredentialError after the reflections under way have been stored.
    """
    if not outcomes:
        return EvolutionResult([])
    stored = checkpoints.reflections()
    missing = [o for o in outcomes if o.id not in stored]
    fresh, set_aside = _reflect_all(engine, playbook, missing, checkpoints, concurrency)
    known = stored | fresh
    reflections = {o.id: known[o.id] for o in outcomes if o.id in known}
    if not reflections:
        raise NothingReflected(set_aside)
    curation = checkpoints.curation()
    if curation is None:
        curation = engine.curate(reflections, outcomes, playbook)
        checkpoints.save_curation(curation)
    votes = tag_operations(reflections, outcomes, playbook.document, source=engine.vote_source)
    return EvolutionResult([*votes, *curation_operations(curation)], set_aside, reflections)


def _reflect_all(
    engine: Engine,
    playbook: PlaybookInput,
    outcomes: Sequence[OutcomeInput],
    checkpoints: Checkpoints,
    concurrency: int,
) -> tuple[dict[str, Reflection], dict[str, str]]:
    """Reflections and reasons by outcome id, each stored as it arrives."""
    good: dict[str, Reflection] = {}
    bad: dict[str, str] = {}

    def study(outcome: OutcomeInput) -> ReflectionResult | str:
        try:
            return engine.reflect(outcome, playbook)
        except AnswerError as error:
            return error.message

    calls = [(outcome.id, partial(study, outcome)) for outcome in outcomes]
    # A lost fence ends the job while it is stored: then no further call is made.
    with closing(run_concurrently(calls, at_once=concurrency)) as studied:
        for outcome_id, found in studied:
            if isinstance(found, str):
                bad[outcome_id] = found
                continue
            checkpoints.save_reflection(outcome_id, found.reflection, found.tokens)
            good[outcome_id] = found.reflection
    return good, bad


def run_concurrently(
    calls: Sequence[tuple[str, Callable[[], T]]], *, at_once: int
) -> Generator[tuple[str, T]]:
    """Keys and results as they come; when a call raises an LLMError no further one begins.

    Then those under way are still handed over, and the first error is raised. A call begins only
    when the result of an earlier one was taken, so a kill loses at most `at_once` results.
    """
    waiting, stop = deque(calls), None
    with ThreadPoolExecutor(max_workers=max(1, at_once)) as pool:
        under_way: dict[Future[T], str] = {}
        while waiting or under_way:
            while waiting and len(under_way) < max(1, at_once):
                key, call = waiting.popleft()
                under_way[pool.submit(call)] = key
            for done in wait(under_way, return_when=FIRST_COMPLETED).done:
                key = under_way.pop(done)
                try:
                    result = done.result()
                except LLMError as error:
                    stop = stop or error
                    waiting.clear()
                else:
                    yield key, result
    if stop is not None:
        raise stop


def tag_operations(
    reflections: Mapping[str, Reflection],
    outcomes: Sequence[OutcomeInput],
    document: Document,
    *,
    source: str,
) -> list[Operation]:
    """One vote for each bullet that a reflection may tag and the playbook has; the last tag counts.

    A reflection may tag what its outcome is about: bullets that it cites, or names in its trace or
    notes. What one outcome says about anything else is no evidence, nor is blame of a bullet that
    was not cited.
    """
    known = document.by_id()
    cited = {o.id: frozenset(o.cited) for o in outcomes}
    named = {o.id: frozenset(find_ids(f"{o.trace}\n{o.notes}".lower())) for o in outcomes}
    return [
        Operation("TAG", id=bullet_id, tag=tag, source=source, outcome_ids=(outcome_id,))
        for outcome_id, reflection in reflections.items()
        for bullet_id, tag in {t.id: t.tag for t in reflection.bullet_tags}.items()
        if bullet_id in known
        and (
            bullet_id in cited[outcome_id] or (tag != "harmful" and bullet_id in named[outcome_id])
        )
    ]


def curation_operations(curation: Curation) -> list[Operation]:
    """The Curator's operations, unchanged: the delta rules judge and record each one.

    A TAG among them gets a type that those rules do not know: votes come from reflections alone,
    else one outcome would count twice.
    """
    return [
        Operation(
            "CURATOR TAG" if proposed.type == "TAG" else proposed.type,
            section=proposed.section,
            id=proposed.id,
            ids=tuple(key for key in proposed.ids if key != proposed.id),
            content=proposed.content,
            reason=proposed.reason,
            outcome_ids=tuple(proposed.outcome_ids),
            revision=proposed.revision,
        )
        for proposed in curation.operations
    ]
