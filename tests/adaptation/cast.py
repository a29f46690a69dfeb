"""What the pure tests share: a student that answers from bullets, a learner that adds them."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evolution.engine.adaptation.parts import Edition, Learned
from evolution.engine.environments import AnswerMatch, Environment, Question, Sample
from evolution.engine.generator import Generated, Generation
from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.llm import AnswerError
from evolution.engine.reflector import BulletTag, Reflected, Reflection
from playbooks.document import DEFAULT_SECTIONS, Bullet, Document


def samples(*targets: str) -> list[Sample]:
    return [
        Sample(Question(f"s{number}", f"Question {number}?"), target)
        for number, target in enumerate(targets, start=1)
    ]


@dataclass
class ListedCheckpoints:
    kept: dict[str, Any] = field(default_factory=dict)

    def load(self, keys: Any) -> dict[str, Any]:
        return {key: self.kept[key] for key in keys if key in self.kept}

    def save(self, key: str, value: Any) -> None:
        assert key not in self.kept, "paid twice"
        self.kept[key] = value


@dataclass
class Pupil:
    """Knows what the bullets say: one bullet is one right answer."""

    asked: list[tuple[str, Question, Reflection | None]] = field(default_factory=list)
    reflected: list[OutcomeInput] = field(default_factory=list)
    fails_on: str = ""
    after_reflection: Callable[[Question], str] = lambda question: "still wrong"
    lock: threading.Lock = field(default_factory=threading.Lock)

    def generate(
        self, key: str, question: Question, playbook: PlaybookInput, told: Reflection | None
    ) -> Generated:
        with self.lock:
            self.asked.append((key, question, told))
        if question.id == self.fails_on:
            raise AnswerError("refused", "The model refused to answer.")
        known = {bullet.id: bullet.content for bullet in playbook.document.bullets}
        if told is not None:
            return Generated(Generation(final_answer=self.after_reflection(question)))
        for name, content in known.items():
            if content.startswith(f"{question.task} "):
                answer = content.removeprefix(f"{question.task} ")
                return Generated(Generation(final_answer=answer, bullet_ids=[name]))
        return Generated(Generation(final_answer="no idea"))

    def reflect(self, outcome: OutcomeInput, playbook: PlaybookInput) -> Reflected:
        with self.lock:
            self.reflected.append(outcome)
        return Reflected(
            Reflection(
                key_insight="Look again.",
                correct_approach=f"Say what the notes say: {outcome.notes}",
                bullet_tags=[BulletTag(id="str-00001", tag="harmful")],
            )
        )


@dataclass
class NotedLearner:
    """Adds a bullet for each outcome that tells the right answer, or forgets all it knew."""

    forgets: bool = False
    batches: list[tuple[str, list[OutcomeInput]]] = field(default_factory=list)
    editions: list[tuple[Bullet, ...]] = field(default_factory=lambda: [()])
    kept: str = ""

    def start(self) -> Edition:
        return self._edition(0)

    def learn(self, key: str, outcomes: Sequence[OutcomeInput]) -> Learned:
        self.batches.append((key, list(outcomes)))
        bullets = [] if self.forgets else list(self.editions[-1])
        for outcome in outcomes:
            truth = outcome.notes.partition("Right answer: ")[2]
            content = f"{outcome.task} {truth}"
            if truth and not self.forgets and content not in [bullet.content for bullet in bullets]:
                number = len(bullets) + 1
                bullets.append(Bullet(f"str-{number:05d}", DEFAULT_SECTIONS[0].key, content))
        self.editions.append(tuple(bullets))
        return Learned(self._edition(len(self.editions) - 1), {"add": 1})

    def keep(self, edition: Edition) -> Edition:
        self.kept = edition.label
        return edition

    def _edition(self, number: int) -> Edition:
        document = Document.of(DEFAULT_SECTIONS, self.editions[number])
        return Edition(str(number), PlaybookInput(document, 16_000))


@dataclass
class Scene:
    pupil: Pupil = field(default_factory=Pupil)
    learner: NotedLearner = field(default_factory=NotedLearner)
    checkpoints: ListedCheckpoints = field(default_factory=ListedCheckpoints)
    environment: Environment = field(default_factory=AnswerMatch)
    waits: list[float] = field(default_factory=list)

    def parts(self) -> dict[str, Any]:
        """The arguments that both adapters take."""
        return {
            "student": self.pupil,
            "learner": self.learner,
            "environment": self.environment,
            "checkpoints": self.checkpoints,
            "wait": self.waits.append,
        }
