"""The inputs of the engine: a playbook, and outcomes that agents reported."""

import re
from dataclasses import dataclass

from playbooks.document.text import Document

SELF_REPORT, GROUND_TRUTH = "self_report", "ground_truth"
_RIGHT_ANSWER = re.compile(r"^(?:right|correct|expected) answer:[ \t]*(.+)$", re.I | re.M)


def max_adds(signal: str) -> int:
    """How many new bullets one outcome may bring: an agent's own opinion one, a check three."""
    return 1 if signal == SELF_REPORT else 3


@dataclass(frozen=True)
class OutcomeInput:
    """One report. `status`: success, failure or partial. `cited`: ids the agent says it used."""

    id: str
    task: str
    status: str
    trace: str = ""
    notes: str = ""
    signal: str = SELF_REPORT
    cited: tuple[str, ...] = ()

    @property
    def right_answer(self) -> str:
        """What a line `Right answer: …` of the notes says where the signal is `ground_truth`."""
        found = _RIGHT_ANSWER.search(self.notes) if self.signal == GROUND_TRUTH else None
        return found[1].strip() if found else ""


@dataclass(frozen=True)
class PlaybookInput:
    """The base version of a job. `token_budget` is what the playbook may grow to.

    `taken_back` are texts that were tried and made tasks fail, the latest first. `backed`: ids of
    bullets that rest on a test or a known answer.
    """

    document: Document
    token_budget: int
    taken_back: tuple[str, ...] = ()
    name: str = ""
    purpose: str = ""
    backed: frozenset[str] = frozenset()
