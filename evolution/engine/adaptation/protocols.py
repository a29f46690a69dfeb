"""The protocols of an adapter: Solver, Learner, Checkpoints, and the progress it reports."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from evolution.engine.environments import Question
from evolution.engine.generator import Generation
from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.reflector import Reflection, ReflectionResult
from playbooks.document.text import estimate_tokens, render_for_agents, text_hash

COUNTS = (
    *("add", "update", "merge", "remove", "noop", "rejected"),
    *("helpful", "harmful", "neutral"),
)


class Solver(Protocol):
    """Answers questions, and reflects on an answer. Called from several threads."""

    def generate(
        self, key: str, question: Question, playbook: PlaybookInput, reflection: Reflection | None
    ) -> Generation:
        """One answer; `key` names the call in the ledger. Raises an LLMError."""
        ...

    def reflect(self, outcome: OutcomeInput, playbook: PlaybookInput) -> ReflectionResult:
        """One reflection between two attempts. Raises an LLMError."""
        ...


@dataclass(frozen=True)
class PlaybookSnapshot:
    """A state of the playbook; `label` names it to the learner that made it."""

    label: str
    playbook: PlaybookInput

    @property
    def view_hash(self) -> str:
        """Of what a Generator reads: equal views give equal answers, so they are scored once."""
        return text_hash(render_for_agents(self.playbook.document))[:12]

    @property
    def bullets(self) -> int:
        return len(self.playbook.document.bullets)

    @property
    def tokens(self) -> int:
        return estimate_tokens(render_for_agents(self.playbook.document))


@dataclass(frozen=True)
class Learned:
    """What became of one batch: the snapshot after it, operations and votes by COUNTS.

    `error` is the code for which the whole batch taught nothing, else empty.
    """

    snapshot: PlaybookSnapshot
    counts: dict[str, int] = field(default_factory=dict)
    error: str = ""


class Learner(Protocol):
    """A playbook that learns a batch at a time. Called on the adapter's own thread."""

    def start(self) -> PlaybookSnapshot:
        """The snapshot at which this run began; after a kill still the same."""
        ...

    def learn(self, key: str, outcomes: Sequence[OutcomeInput]) -> Learned:
        """Reflect on the outcomes, curate and publish; the same key is learnt only once."""
        ...

    def keep(self, snapshot: PlaybookSnapshot) -> PlaybookSnapshot:
        """Make this snapshot the current one; idempotent."""
        ...


class Checkpoints(Protocol):
    """Results by key, which are JSON. Called on the adapter's own thread."""

    def bind(self, plan: Mapping[str, Any]) -> None:
        """Accept only this plan from now on; raises CheckpointMismatch for another one."""
        ...

    def load(self, keys: Collection[str]) -> dict[str, Any]:
        """Those of the keys that are stored."""
        ...

    def save(self, key: str, value: Any) -> None:
        """Durable when it returns."""
        ...


class CheckpointMismatch(ValueError):
    """The checkpoints are of a run with other samples, models or options."""


@dataclass(frozen=True)
class Point:
    """A measurement: after `step` batches, how much of `split` was right, and the playbook's size.

    `split` is `validation`, `test`, or `window` (online).
    """

    step: int
    split: str
    accuracy: float
    bullets: int
    tokens: int


@dataclass
class Progress:
    """The progress of a run. `done` and `total` count answers: made, and possibly needed."""

    total: int = 0
    done: int = 0
    step: int = 0
    phase: str = ""
    points: list[Point] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    failed_samples: int = 0
    failed_batches: list[str] = field(default_factory=list)

    def count(self, learned: Learned) -> None:
        for name, number in learned.counts.items():
            self.counts[name] = self.counts.get(name, 0) + number
        if learned.error:
            self.failed_batches.append(learned.error)

    def as_dict(self, kept: PlaybookSnapshot) -> dict[str, object]:
        """What the summaries of all adapters say, ready for JSON."""
        votes = self.counts["helpful"] + self.counts["harmful"]
        return {
            "failed_batches": self.failed_batches,
            "failed_samples": self.failed_samples,
            "operations": self.counts,
            "helpful_ratio": self.counts["helpful"] / votes if votes else None,
            "playbook": {"bullets": kept.bullets, "tokens": kept.tokens},
            "points": [vars(point) for point in self.points],
        }


Observer = Callable[[Progress], None]
