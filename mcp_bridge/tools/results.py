"""The structured results of the tools, and the same as text."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, Self
from uuid import UUID

from django.db.models import Model
from pydantic import AliasPath, BaseModel, ConfigDict, Field

from evolution.jobs.lifecycle import TriggeredEvolution
from evolution.outcomes.cases import CaseTask
from evolution.outcomes.reporting import RecordedOutcome
from mcp_bridge.protocol.playbook_text import (
    REPORTING_RULE,
    describe_omissions,
    render_playbook_text,
)
from playbooks.models import Playbook, Version
from playbooks.services.reading import Reading, rank_playbooks


class ToolResult(BaseModel):
    """The base of every result; clients without structured content show `as_text`."""

    def as_text(self) -> str:
        return self.model_dump_json()


class ResultItem(BaseModel):
    """A result read from a row: `of(row)`."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def of(cls, row: Model) -> Self:
        return cls.model_validate(row)


class PlaybookItem(ResultItem):
    """An entry of `list_playbooks`, from a row of `with_counts()`."""

    id: UUID
    name: str
    description: str
    last_updated: datetime = Field(validation_alias="updated_at")
    bullet_count: int
    outcome_count: int
    pending_outcomes: int
    budget_used: float
    last_evolution: str | None = Field(validation_alias="job_status")
    is_starter: bool
    fits: bool = False


class PlaybookList(ToolResult):
    """`note` says why the rows are not what was asked for."""

    result: list[PlaybookItem]
    next_cursor: str | None
    note: str

    @classmethod
    def of(
        cls, rows: Sequence[Playbook], cursor: str | None, *, repository: str, note: str = ""
    ) -> Self:
        name = " ".join(re.findall(r"[^\W_]+", re.split(r"[/\\]", repository.rstrip("/\\"))[-1]))
        fitting = {row.pk for row in rank_playbooks(rows, name, shared_only=True)}
        items = [PlaybookItem.of(row) for row in rows]
        for item in items:
            item.fits = item.id in fitting
        return cls(result=items, next_cursor=cursor, note=note)


class PlaybookText(ToolResult):
    """A playbook as agents read it."""

    id: UUID
    name: str
    version: int
    serving_id: str
    token_count: int
    content: str
    left_out: list[str]
    rule: str

    @classmethod
    def of(cls, reading: Reading) -> Self:
        return cls(
            id=reading.id,
            name=reading.name,
            version=reading.version,
            serving_id=reading.serving_id,
            token_count=reading.token_count,
            content=reading.content,
            left_out=describe_omissions(reading),
            rule=REPORTING_RULE,
        )

    def as_text(self) -> str:
        return render_playbook_text(
            self.content, self.id, self.version, self.serving_id, self.left_out
        )


class PlaybookCreated(ToolResult):
    """A new playbook, or one with a new version."""

    id: UUID
    name: str
    version: int

    @classmethod
    def of(cls, playbook: Playbook, version: Version | None = None) -> Self:
        current = version or playbook.current_version
        number = current.number if current is not None else 0
        return cls(id=playbook.pk, name=playbook.name, version=number)


class OutcomeRecorded(ToolResult):
    """The stored outcome."""

    outcome_id: UUID
    status: Literal["recorded"] = "recorded"
    pending_outcomes: int
    warnings: list[str]

    @classmethod
    def of(cls, report: RecordedOutcome) -> Self:
        return cls(
            outcome_id=report.outcome.pk,
            pending_outcomes=report.pending_outcomes,
            warnings=list(report.warnings),
        )


class CaseToAnswer(ToolResult):
    """A case, or none while no version waits for its check."""

    question: str
    content: str
    serving_id: str

    @classmethod
    def of(cls, task: CaseTask | None) -> Self:
        if task is None:
            return cls(question="", content="No version waits for its check.", serving_id="")
        return cls(question=task.question, content=task.content, serving_id=task.serving_id)


class EvolutionTriggered(ToolResult):
    """The evolution that runs or will run."""

    job_id: UUID | None
    status: str
    is_new: bool

    @classmethod
    def of(cls, triggered: TriggeredEvolution) -> Self:
        job_id = triggered.active.pk if triggered.active is not None else None
        return cls(job_id=job_id, status=triggered.status, is_new=triggered.is_new)


class EvolutionState(ResultItem, ToolResult):
    """The status of an evolution."""

    job_id: UUID = Field(validation_alias="id")
    status: str
    outcomes_processed: int
    started_at: datetime | None
    completed_at: datetime | None
    error_message: str | None = Field(validation_alias="problem")
    token_totals: dict[str, Any] = Field(validation_alias="usage_totals")
    refused: list[dict[str, str]]


class OutcomeState(ResultItem, ToolResult):
    """What became of a report: the edits based on it, and its lessons that became none."""

    outcome_id: UUID = Field(validation_alias="pk")
    outcome: str = Field(validation_alias="status")
    signal: str
    # Not `result`: clients take a list of that name for the whole answer.
    became: str = Field(validation_alias="result")
    job_id: UUID | None
    to_version: int | None = Field(None, validation_alias=AliasPath("job", "to_version", "number"))
    edits: list[dict[str, str]]
    unused: list[dict[str, str]]
    set_aside_reason: str


class EvolutionItem(ResultItem):
    """An entry of `list_evolutions`."""

    job_id: UUID = Field(validation_alias="id")
    status: str
    created_at: datetime
    outcomes_processed: int
    refused_count: int
    from_version: int | None = Field(None, validation_alias=AliasPath("from_version", "number"))
    to_version: int | None = Field(None, validation_alias=AliasPath("to_version", "number"))
    error_message: str | None = Field(validation_alias="problem")


class EvolutionList(ToolResult):
    result: list[EvolutionItem]
    next_cursor: str | None


class VersionItem(ResultItem):
    """An entry of `list_versions`."""

    version: int = Field(validation_alias="number")
    reason: str
    created_at: datetime
    bullet_count: int
    token_count: int


class VersionList(ToolResult):
    result: list[VersionItem]
    next_cursor: str | None
