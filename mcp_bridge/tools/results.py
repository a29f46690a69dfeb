"""The structured results of the tools, and the same as text."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, Self
from uuid import UUID

from pydantic import AliasPath, BaseModel, ConfigDict, Field, field_validator

from evolution.outcomes.cases import CaseTask
from playbooks.models import Playbook, Version
from playbooks.services.reading import rank_playbooks

REPORTING_RULE = (
    "After the task, success or not, call report_outcome once with this playbook_id and "
    "serving_id, the outcome, and as bullet_ids the ids of the bullets that you used or that "
    "misled you."
)


class ToolResult(BaseModel):
    """The base of every result; clients without structured content show `as_text`."""

    def as_text(self) -> str:
        return self.model_dump_json()


class ResultItem(BaseModel):
    """A result read from the attributes of a row or of what a service returns: `of(row)`."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def of(cls, row: Any) -> Self:
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


class PlaybookText(ResultItem, ToolResult):
    """A playbook as agents read it: a `Reading`, with `left_out` in words."""

    id: UUID
    name: str
    version: int
    serving_id: str
    estimated_tokens: int = Field(validation_alias="token_count")
    content: str
    left_out: list[str]
    rule: str = REPORTING_RULE

    @field_validator("left_out", mode="before")
    @classmethod
    def _describe(cls, parts: Iterable[Any]) -> list[str]:
        """What `max_tokens` left out, such as `12 bullets of COMMON MISTAKES TO AVOID`."""
        return [f"{p.bullets} bullet{'' if p.bullets == 1 else 's'} of {p.section}" for p in parts]

    def as_text(self) -> str:
        """The advice, then the ids and the rule for reporting."""
        lines = [
            self.content or "(No advice yet.)",
            "---",
            f"playbook_id {self.id}, version {self.version}, serving_id {self.serving_id}",
        ]
        if self.left_out:
            lines.append(f"Left out to stay within max_tokens: {', '.join(self.left_out)}.")
        return "\n".join([*lines, REPORTING_RULE])


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


class OutcomeRecorded(ResultItem, ToolResult):
    outcome_id: UUID = Field(validation_alias=AliasPath("outcome", "pk"))
    status: Literal["recorded"] = "recorded"
    pending_outcomes: int
    warnings: list[str]


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


class EvolutionTriggered(ResultItem, ToolResult):
    job_id: UUID | None = Field(None, validation_alias=AliasPath("active", "pk"))
    status: str
    is_new: bool


class EvolutionState(ResultItem, ToolResult):
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
    version: int = Field(validation_alias="number")
    reason: str
    created_at: datetime
    bullet_count: int
    estimated_tokens: int = Field(validation_alias="token_count")


class VersionList(ToolResult):
    result: list[VersionItem]
    next_cursor: str | None
