"""The structured results of the tools, and the same as text."""

from datetime import datetime
from typing import Literal, Self
from uuid import UUID

from django.db.models import Model
from pydantic import AliasPath, BaseModel, ConfigDict, Field

from evolution.jobs.lifecycle import TriggeredEvolution
from evolution.outcomes.reporting import RecordedOutcome
from mcp_bridge.protocol.playbook_text import (
    REPORTING_RULE,
    describe_omissions,
    render_playbook_text,
)
from playbooks.models import Playbook, Version
from playbooks.services.reading import Reading

CURSOR_HINT = "For `cursor`."


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

    id: UUID = Field(description="playbook_id.")
    name: str = Field(description="Its name.")
    description: str = Field(description="For what.")
    last_updated: datetime = Field(description="ISO time.", validation_alias="updated_at")
    bullet_count: int = Field(description="Bullets.")
    outcome_count: int = Field(description="Reports.")
    is_starter: bool = Field(description="Clone it to report.")


class PlaybookList(ToolResult):
    result: list[PlaybookItem] = Field(description="Newest first.")
    next_cursor: str | None = Field(description=CURSOR_HINT)


class PlaybookText(ToolResult):
    """A playbook as agents read it."""

    id: UUID = Field(description="playbook_id.")
    name: str = Field(description="Its name.")
    version: int = Field(description="Read version.")
    serving_id: str = Field(description="For report_outcome.")
    content: str = Field(description="Bullets with [id].")
    left_out: list[str] = Field(description="Not shown.")
    rule: str = Field(description="Do this.")

    @classmethod
    def of(cls, reading: Reading) -> Self:
        return cls(
            id=reading.id,
            name=reading.name,
            version=reading.version,
            serving_id=reading.serving_id,
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

    id: UUID = Field(description="Its id.")
    name: str = Field(description="Its name.")
    version: int = Field(description="Current.")

    @classmethod
    def of(cls, playbook: Playbook, version: Version | None = None) -> Self:
        current = version or playbook.current_version
        number = current.number if current is not None else 0
        return cls(id=playbook.pk, name=playbook.name, version=number)


class OutcomeRecorded(ToolResult):
    """The stored outcome."""

    outcome_id: UUID = Field(description="Its id.")
    status: Literal["recorded"] = Field(default="recorded", description="Stored.")
    pending_outcomes: int = Field(description="Reports waiting.")

    @classmethod
    def of(cls, report: RecordedOutcome) -> Self:
        return cls(outcome_id=report.outcome.pk, pending_outcomes=report.pending_outcomes)


class EvolutionTriggered(ToolResult):
    """The evolution that runs or will run."""

    job_id: UUID = Field(description="Its id.")
    status: str = Field(description="queued or running.")
    is_new: bool = Field(description="Not active before.")

    @classmethod
    def of(cls, triggered: TriggeredEvolution) -> Self:
        job = triggered.job
        return cls(job_id=job.pk, status=job.status, is_new=triggered.is_new)


class EvolutionState(ResultItem, ToolResult):
    """The status of an evolution."""

    job_id: UUID = Field(description="Its id.", validation_alias="id")
    status: str = Field(description="queued, running, completed, failed or cancelled.")
    outcomes_processed: int = Field(description="Reports used.")
    started_at: datetime | None = Field(description="Start.")
    completed_at: datetime | None = Field(description="End.")
    error_message: str | None = Field(
        description="Why it failed or waits.", validation_alias="problem"
    )
    refused: list[dict[str, str]] = Field(description="Edits not made.")


class EvolutionItem(ResultItem):
    """An entry of `list_evolutions`."""

    job_id: UUID = Field(description="Its id.", validation_alias="id")
    status: str = Field(description="Its state.")
    created_at: datetime = Field(description="ISO time.")
    outcomes_processed: int = Field(description="Reports used.")
    refused_count: int = Field(description="Edits not made.")
    from_version: int | None = Field(
        None, description="Before.", validation_alias=AliasPath("from_version", "number")
    )
    to_version: int | None = Field(
        None, description="After.", validation_alias=AliasPath("to_version", "number")
    )
    error_message: str | None = Field(
        description="Why it failed or waits.", validation_alias="problem"
    )


class EvolutionList(ToolResult):
    result: list[EvolutionItem] = Field(description="One page.")
    next_cursor: str | None = Field(description=CURSOR_HINT)


class VersionItem(ResultItem):
    """An entry of `list_versions`."""

    version: int = Field(description="Its number.", validation_alias="number")
    reason: str = Field(description="Why.")
    created_at: datetime = Field(description="ISO time.")
    bullet_count: int = Field(description="Bullets.")
    token_count: int = Field(description="Tokens.")


class VersionList(ToolResult):
    result: list[VersionItem] = Field(description="One page.")
    next_cursor: str | None = Field(description=CURSOR_HINT)
