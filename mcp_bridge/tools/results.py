"""The structured results of the tools, and the same as text."""

from datetime import datetime
from typing import Literal, Self
from uuid import UUID

from pydantic import BaseModel, Field

from evolution.jobs.lifecycle import TriggeredEvolution
from evolution.models import EvolutionJob
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


class PlaybookItem(BaseModel):
    """An entry of `list_playbooks`."""

    id: UUID = Field(description="playbook_id.")
    name: str = Field(description="Its name.")
    description: str = Field(description="For what.")
    last_updated: datetime = Field(description="ISO time.")
    bullet_count: int = Field(description="Bullets.")
    outcome_count: int = Field(description="Reports.")
    is_starter: bool = Field(description="Clone it to report.")

    @classmethod
    def of(cls, playbook: Playbook) -> Self:
        """From a row of `with_counts()`."""
        return cls(
            id=playbook.pk,
            name=playbook.name,
            description=playbook.description,
            last_updated=playbook.updated_at,
            bullet_count=playbook.bullet_count,  # type: ignore[attr-defined]  # with_counts() adds it
            outcome_count=playbook.outcome_count,  # type: ignore[attr-defined]  # likewise
            is_starter=playbook.is_starter,
        )


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


class EvolutionState(ToolResult):
    """The status of an evolution."""

    job_id: UUID = Field(description="Its id.")
    status: str = Field(description="queued, running, completed, failed or cancelled.")
    outcomes_processed: int = Field(description="Reports used.")
    started_at: datetime | None = Field(description="Start.")
    completed_at: datetime | None = Field(description="End.")
    error_message: str | None = Field(description="Why it failed or waits.")

    @classmethod
    def of(cls, job: EvolutionJob) -> Self:
        return cls(
            job_id=job.pk,
            status=job.status,
            outcomes_processed=job.outcomes_processed,
            started_at=job.started_at,
            completed_at=job.completed_at,
            error_message=job.error_message or job.wait_reason or None,
        )


class EvolutionItem(BaseModel):
    """An entry of `list_evolutions`."""

    job_id: UUID = Field(description="Its id.")
    status: str = Field(description="Its state.")
    created_at: datetime = Field(description="ISO time.")
    outcomes_processed: int = Field(description="Reports used.")
    from_version: int | None = Field(description="Before.")
    to_version: int | None = Field(description="After.")
    error_message: str | None = Field(description="Why it failed or waits.")

    @classmethod
    def of(cls, job: EvolutionJob) -> Self:
        before, after = job.from_version, job.to_version
        return cls(
            job_id=job.pk,
            status=job.status,
            created_at=job.created_at,
            outcomes_processed=job.outcomes_processed,
            from_version=before.number if before is not None else None,
            to_version=after.number if after is not None else None,
            error_message=job.error_message or job.wait_reason or None,
        )


class EvolutionList(ToolResult):
    result: list[EvolutionItem] = Field(description="One page.")
    next_cursor: str | None = Field(description=CURSOR_HINT)


class VersionItem(BaseModel):
    """An entry of `list_versions`."""

    version: int = Field(description="Its number.")
    reason: str = Field(description="Why.")
    created_at: datetime = Field(description="ISO time.")
    bullet_count: int = Field(description="Bullets.")
    token_count: int = Field(description="Tokens.")

    @classmethod
    def of(cls, version: Version) -> Self:
        return cls(
            version=version.number,
            reason=version.reason,
            created_at=version.created_at,
            bullet_count=version.bullet_count,
            token_count=version.token_count,
        )


class VersionList(ToolResult):
    result: list[VersionItem] = Field(description="One page.")
    next_cursor: str | None = Field(description=CURSOR_HINT)
