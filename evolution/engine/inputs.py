"""The inputs of the engine: a playbook, and outcomes that agents reported."""

from dataclasses import dataclass

from playbooks.document.text import Document

SELF_REPORT = "self_report"


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


@dataclass(frozen=True)
class PlaybookInput:
    """The base version of a job. `token_budget` is what the playbook may grow to.

    `taken_back` are texts that were tried and made tasks fail, the latest first.
    """

    document: Document
    token_budget: int
    taken_back: tuple[str, ...] = ()
