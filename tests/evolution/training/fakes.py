"""What the pure tests share: a solver that answers from bullets, a learner that adds them."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evolution.engine.adaptation.protocols import Learned, PlaybookSnapshot
from evolution.engine.environments import AnswerMatch, Environment, Question, Sample
from evolution.engine.generator import Generation
from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.llm import AnswerError
from evolution.engine.reflector import BulletTag, Reflection, ReflectionResult
from playbooks.document.sections import DEFAULT_SECTIONS
from playbooks.document.text import Bullet, Document


def samples(*targets: str) -> list[Sample]:
    return [
        Sample(Question(f"s{number}", f"Question {number}?"), target)
        for number, target in enumerate(targets, start=1)
    ]


@dataclass
class InMemoryCheckpoints:
    kept: dict[str, Any] = field(default_factory=dict)

    def bind(self, plan: Any) -> None:
        """A test has one plan."""

    def load(self, keys: Any) -> dict[str, Any]:
        return {key: self.kept[key] for key in keys if key in self.kept}

    def save(self, key: str, value: Any) -> None:
        assert key not in self.kept, "paid twice"
        self.kept[key] = value


@dataclass
class FakeSolver:
    """Knows what the bullets say: one bullet is one right answer."""

    asked: list[tuple[str, Question, Reflection | None]] = field(default_factory=list)
    reflected: list[OutcomeInput] = field(default_factory=list)
    fails_on: str = ""
    after_reflection: Callable[[Question], str] = lambda question: "still wrong"
    lock: threading.Lock = field(default_factory=threading.Lock)

    def generate(
        self, key: str, question: Question, playbook: PlaybookInput, reflection: Reflection | None
    ) -> Generation:
        with self.lock:
            self.asked.append((key, question, reflection))
        if question.id == self.fails_on:
            raise AnswerError("refused", "The model refused to answer.")
        known = {bullet.id: bullet.content for bullet in playbook.document.bullets}
        if reflection is not None:
            return Generation(final_answer=self.after_reflection(question))
        for name, content in known.items():
            if content.startswith(f"{question.task} "):
                answer = content.removeprefix(f"{question.task} ")
                return Generation(final_answer=answer, bullet_ids=[name])
        return Generation(final_answer="no idea")

    def reflect(self, outcome: OutcomeInput, playbook: PlaybookInput) -> ReflectionResult:
        with self.lock:
            self.reflected.append(outcome)
        return ReflectionResult(
            Reflection(
                key_insight="Look again.",
                correct_approach=f"Say what the notes say: {outcome.notes}",
                bullet_tags=[BulletTag(id="str-00001", tag="harmful")],
            )
        )


@dataclass
class FakeLearner:
    """Adds a bullet for each outcome that tells the right answer, or forgets all it knew."""

    forgets: bool = False
    batches: list[tuple[str, list[OutcomeInput]]] = field(default_factory=list)
    snapshots: list[tuple[Bullet, ...]] = field(default_factory=lambda: [()])
    kept: str = ""

    def start(self) -> PlaybookSnapshot:
        return self._snapshot(0)

    def learn(self, key: str, outcomes: Sequence[OutcomeInput]) -> Learned:
        self.batches.append((key, list(outcomes)))
        bullets = [] if self.forgets else list(self.snapshots[-1])
        for outcome in outcomes:
            truth = outcome.notes.partition("Right answer: ")[2]
            content = f"{outcome.task} {truth}"
            if truth and not self.forgets and content not in [bullet.content for bullet in bullets]:
                number = len(bullets) + 1
                bullets.append(Bullet(f"str-{number:05d}", DEFAULT_SECTIONS[0].key, content))
        self.snapshots.append(tuple(bullets))
        return Learned(self._snapshot(len(self.snapshots) - 1), {"add": 1})

    def keep(self, snapshot: PlaybookSnapshot) -> PlaybookSnapshot:
        self.kept = snapshot.label
        return snapshot

    def _snapshot(self, number: int) -> PlaybookSnapshot:
        document = Document.of(DEFAULT_SECTIONS, self.snapshots[number])
        return PlaybookSnapshot(str(number), PlaybookInput(document, 16_000))


@dataclass
class TrainingHarness:
    solver: FakeSolver = field(default_factory=FakeSolver)
    learner: FakeLearner = field(default_factory=FakeLearner)
    checkpoints: InMemoryCheckpoints = field(default_factory=InMemoryCheckpoints)
    environment: Environment = field(default_factory=AnswerMatch)
    judge: Environment | None = None
    waits: list[float] = field(default_factory=list)

    def parts(self) -> dict[str, Any]:
        """The arguments that both adapters take."""
        return {
            "solver": self.solver,
            "learner": self.learner,
            "environment": self.environment,
            "judge": self.judge,
            "checkpoints": self.checkpoints,
            "wait": self.waits.append,
        }
