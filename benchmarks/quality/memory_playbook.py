"""Adaptation without the platform: a playbook in this process, checkpoints in a file.

docs/ADAPTATION.md shows all of it in one piece.
"""

import hashlib
import json
import os
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from benchmarks.quality.merge_refinement import MergeRefinement
from evolution.engine.adaptation.protocols import (
    COUNTS,
    CheckpointMismatch,
    Learned,
    PlaybookSnapshot,
)
from evolution.engine.curator import Curation
from evolution.engine.evolve import Engine, evolve
from evolution.engine.inputs import OutcomeInput, PlaybookInput, max_adds
from evolution.engine.llm import LLM, AnswerError, ChatRequest, Ledger, LLMReply
from evolution.engine.providers.openai import ModelOptions, OpenAILLM
from evolution.engine.reflector import Reflection
from playbooks.document.budget import collapses
from playbooks.document.deltas import apply_operations
from playbooks.document.operations import APPLIED, Operation, Policy, Record
from playbooks.document.sections import DEFAULT_SECTIONS
from playbooks.document.state import BulletState, State
from playbooks.document.text import number_of, parse, render


class FileCheckpoints:
    """Checkpoints as lines of JSON in one file, each on disk before it counts.

    A line that a kill tore is read as not there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[str, Any] = {}
        for line in path.read_text(encoding="utf-8").split("\n") if path.exists() else []:
            try:
                key, value = json.loads(line)
            except ValueError:
                continue
            self._kept[key] = value

    def bind(self, plan: Mapping[str, Any]) -> None:
        """Keep the file to one plan, name by name; raises CheckpointMismatch."""
        for name, value in plan.items():
            key, digest = f"plan:{name}", hashlib.sha256(repr(value).encode()).hexdigest()
            if self._kept.get(key, digest) != digest:
                raise CheckpointMismatch(
                    f"{self._path} is of a run with another {name}. Name a new file, or delete it."
                )
            if key not in self._kept:
                self.save(key, digest)

    def load(self, keys: Collection[str]) -> dict[str, Any]:
        return {key: self._kept[key] for key in keys if key in self._kept}

    def save(self, key: str, value: Any) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            # The new line comes first: after a torn one the next still stands alone.
            file.write("\n" + json.dumps([key, value], ensure_ascii=False))
            file.flush()
            os.fsync(file.fileno())
        self._kept[key] = value


class TokenLedger:
    """A ledger that counts calls and tokens."""

    def __init__(self) -> None:
        self.calls = self.tokens = 0
        self._lock = threading.Lock()

    def begin(self, request: ChatRequest) -> None:
        """A call is about to be made."""

    def finish(self, entry: None, reply: LLMReply, error: str = "") -> None:
        with self._lock:
            self.calls += 1
            self.tokens += reply.usage.total_tokens


def connect(
    base_url: str,
    api_key: str,
    ledger: Ledger,
    *,
    deadline: float = 120,
    options: ModelOptions = MappingProxyType({}),
) -> LLM:
    """Any OpenAI-compatible endpoint, every call of it noted in the ledger; `deadline` in s.

    The key may be empty, as local servers need none.
    """
    return OpenAILLM(
        api_key=api_key, base_url=base_url, deadline=deadline, ledger=ledger, options=options
    )


class InMemoryPlaybook:
    """A Learner without a database: the same engine, the same delta rules, no audit."""

    def __init__(
        self,
        engine: Engine,
        checkpoints: FileCheckpoints,
        *,
        text: str = "",
        token_budget: int = 16_000,
        concurrency: int = 8,
    ) -> None:
        self._engine, self._checkpoints = engine, checkpoints
        self._budget, self._concurrency = token_budget, concurrency
        self._merges = MergeRefinement(engine, checkpoints, token_budget=token_budget)
        self._state = state_of(text)
        self._states: dict[str, State] = {}
        self._first = self._snapshot()

    @property
    def text(self) -> str:
        """The playbook as ACE text."""
        return render(self._state.document())

    def start(self) -> PlaybookSnapshot:
        text = render(self._states[self._first.label].document())
        self._checkpoints.bind({"engine": self._engine.config_hash, "playbook": text})
        self._state = self._states[self._first.label]
        self._merges.forget()
        return self._first

    def learn(self, key: str, outcomes: Sequence[OutcomeInput]) -> Learned:
        """As `Learner.learn`: what is stored, failures too, is applied again and not paid."""
        document = self._state.document()
        batch = _Batch(key, [o.id for o in outcomes], self._checkpoints)
        ended = batch.ended()
        if ended and ended.error:
            return Learned(self._snapshot(), error=ended.error)
        left_out = ended.set_aside if ended else {}
        try:
            evolved = evolve(
                engine=self._engine,
                playbook=PlaybookInput(document, self._budget),
                outcomes=[outcome for outcome in outcomes if outcome.id not in left_out],
                checkpoints=batch,
                concurrency=self._concurrency,
            )
        except AnswerError as error:
            batch.end(_BatchResult(error=error.code))
            return Learned(self._snapshot(), error=error.code)
        if ended is None:
            ended = _BatchResult(set_aside=evolved.set_aside)
            batch.end(ended)
        merges = self._merges.propose(key, document, evolved.operations)
        operations = [*evolved.operations, *merges]
        policy = Policy(
            machine=True,
            max_adds={o.id: max_adds(o.signal) for o in outcomes if o.id in evolved.reflections},
            token_budget=self._budget,
        )
        result = apply_operations(self._state, operations, policy)
        if collapses(self._state, result.state):
            return Learned(self._snapshot(), error="collapse_guard")
        self._state = result.state
        self._merges.settle()
        counts = counts_of(result.records, operations)
        return Learned(self._snapshot(), counts)

    def keep(self, snapshot: PlaybookSnapshot) -> PlaybookSnapshot:
        self._state = self._states[snapshot.label]
        return snapshot

    def _snapshot(self) -> PlaybookSnapshot:
        document = self._state.document()
        label = str(len(self._states) + 1)
        self._states[label] = self._state
        return PlaybookSnapshot(label, PlaybookInput(document, self._budget))


class _BatchResult(BaseModel):
    """The end of a batch: outcomes set aside with the reason, and the code of its error."""

    set_aside: dict[str, str] = {}
    error: str = ""


class _Batch:
    """The engine's checkpoints of one batch, under keys of its own."""

    def __init__(self, key: str, ids: Sequence[str], kept: FileCheckpoints) -> None:
        self._key, self._ids, self._kept = key, ids, kept

    def reflections(self) -> dict[str, Reflection]:
        keys = {f"{self._key}:reflect:{outcome_id}": outcome_id for outcome_id in self._ids}
        found = self._kept.load(keys)
        return {keys[key]: Reflection.model_validate(value) for key, value in found.items()}

    def save_reflection(self, outcome_id: str, reflection: Reflection, tokens: int) -> None:
        self._kept.save(f"{self._key}:reflect:{outcome_id}", reflection.model_dump(mode="json"))

    def curation(self) -> Curation | None:
        key = f"{self._key}:curate"
        found = self._kept.load([key])
        return Curation.model_validate(found[key]) if found else None

    def save_curation(self, curation: Curation) -> None:
        self._kept.save(f"{self._key}:curate", curation.model_dump(mode="json"))

    def ended(self) -> _BatchResult | None:
        key = f"{self._key}:learned"
        found = self._kept.load([key])
        return _BatchResult.model_validate(found[key]) if found else None

    def end(self, ended: _BatchResult) -> None:
        self._kept.save(f"{self._key}:learned", ended.model_dump())


def state_of(text: str) -> State:
    """The bullets of an ACE text as a state that deltas can change."""
    document = parse(text, sections=DEFAULT_SECTIONS)
    bullets = {
        bullet.id: BulletState(
            id=bullet.id,
            section=bullet.section,
            content=bullet.content,
            helpful=bullet.helpful,
            harmful=bullet.harmful,
            base_helpful=bullet.helpful,
            base_harmful=bullet.harmful,
        )
        for bullet in document.bullets
    }
    last = max((number_of(bullet_id) for bullet_id in bullets), default=0)
    return State(document.sections, bullets, last + 1)


def counts_of(records: Sequence[Record], operations: Sequence[Operation]) -> dict[str, int]:
    """Operations by what became of them, and the votes that were cast."""
    counts = dict.fromkeys(COUNTS, 0)
    for record in records:
        name = record.type.lower() if record.status == APPLIED else record.status
        if name in counts:
            counts[name] += 1
    for operation in operations:
        if operation.type == "TAG":
            counts[operation.tag] += 1
    return counts
