"""Refines a playbook in memory, as evolution/worker/engine_run.py does on the database."""

from collections.abc import Mapping, Sequence

from evolution.engine.adaptation.protocols import Checkpoints
from evolution.engine.evolve import Engine
from evolution.engine.grow_refine import (
    PairKey,
    RefinementInput,
    is_due,
    judge_and_finder,
    refine,
    touched_bullets,
)
from evolution.engine.llm import AnswerError
from evolution.engine.merge_judge import Judge, Pair, Verdict
from playbooks.document.operations import Operation
from playbooks.document.text import Document


class MergeRefinement:
    """The merges of one playbook's batches. Verdicts are stored under the batch's key.

    A run that is resumed repeats its batches, and so comes to the same decisions again.
    """

    def __init__(self, engine: Engine, checkpoints: Checkpoints, *, token_budget: int) -> None:
        self._judge, self._find = judge_and_finder(engine)
        self._checkpoints, self._budget = checkpoints, token_budget
        self.forget()

    def forget(self) -> None:
        """Begin anew, as when the playbook does."""
        self._refined_to = 1
        self._decided: dict[PairKey, Verdict | None] = {}
        self._proposed = self._refined_to, self._decided

    def propose(
        self, key: str, document: Document, besides: Sequence[Operation]
    ) -> list[Operation]:
        """The merges of the batch `key`, none when no refinement is due.

        Raises TransientError, CredentialError.
        """
        self._proposed = self._refined_to, self._decided
        touched, leaving = touched_bullets(besides)
        grown = RefinementInput(document, self._budget, self._refined_to, (), touched, leaving)
        if not is_due(grown):
            return []
        step = f"{key}:judge"
        stored = self._checkpoints.load([step]).get(step, [])
        paid = {PairKey(*names): Verdict.model_validate(verdict) for names, verdict in stored}

        def keep(verdicts: Mapping[PairKey, Verdict]) -> None:
            paid.update(verdicts)
            lines = [[list(names), verdict.model_dump()] for names, verdict in paid.items()]
            self._checkpoints.save(step, lines)

        silent = f"{key}:unjudged"
        known = self._checkpoints.load([silent])
        judge: Judge = _SilentJudge(known[silent]) if known else self._judge
        decided = {**self._decided, **paid}
        refined = refine(grown, find=self._find, judge=judge, decided=decided, keep=keep)
        if refined.problem and not known:
            self._checkpoints.save(silent, refined.problem)
        self._proposed = refined.refined_to, self._decided | dict.fromkeys(paid)
        self._decided |= paid
        return refined.operations

    def settle(self) -> None:
        """The last batch is published: what it decided is done with. Else it is used again."""
        self._refined_to, self._decided = self._proposed


class _SilentJudge:
    """The judge of a batch that had no usable answer: a resumed run asks no second time."""

    def __init__(self, code: str) -> None:
        self._code = code

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict]:
        raise AnswerError(self._code, "There was no usable answer when the batch was learnt.")
