"""The shapes that cross the MCP door: described parameters in, structured results out."""

from datetime import datetime
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field

from evolution.models import EvolutionJob
from evolution.services import Report, Triggered
from playbooks.models import Playbook, Version
from playbooks.services import Reading

MAX_NUMBER = 2_147_483_647


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("contains a NUL character; send the text without it")
    return text


Text = Annotated[str, AfterValidator(_without_nul)]

PlaybookId = Annotated[Text, Field(description="`id` of a playbook, from list_playbooks.")]
JobId = Annotated[
    Text, Field(description="`job_id` of an evolution, from trigger_evolution or list_evolutions.")
]
Limit = Annotated[int, Field(ge=1, le=100, description="How many to return, newest first.")]
VersionNumber = Annotated[
    int, Field(ge=1, le=MAX_NUMBER, description="Number of the version to go back to.")
]
IncludeStarters = Annotated[
    bool,
    Field(
        description="Also list the shared starter playbooks. They can be read and cloned, but "
        "reports and evolutions need a clone of your own."
    ),
]
SectionName = Annotated[
    Text,
    Field(description="Title or key of one section, to read only that. Empty: the whole playbook."),
]
AnyVersion = Annotated[
    int | None,
    Field(ge=1, le=MAX_NUMBER, description="An older version to read. Leave out for the current."),
]
TaskDescription = Annotated[
    Text, Field(description="What the task was, in a few sentences. At most 4 KB.")
]
Result = Annotated[
    Literal["success", "failure", "partial"],
    Field(description="How the task ended. Be honest: failures teach the playbook most."),
]
Trace = Annotated[
    Text,
    Field(
        description="What you did and why, step by step, with the errors you met and what solved "
        "them. No secrets. At most 10 KB; shorten the middle if it is longer."
    ),
]
Notes = Annotated[
    Text,
    Field(
        description="What to know next time: the cause of a failure, advice that was missing or "
        "wrong, the correct answer if it is known. At most 2 KB."
    ),
]
CitedBullets = Annotated[
    tuple[Text, ...],
    Field(
        description='Ids of the bullets that you used or that misled you, e.g. ["str-00001"]. '
        "Cite only what mattered."
    ),
]
ServingId = Annotated[
    Text,
    Field(description="`serving_id` of the get_playbook result that you worked from, unchanged."),
]
Signal = Annotated[
    Literal["ground_truth", "test", "human", "self_report"],
    Field(
        description="How you know the outcome: compared with a known answer, tests ran, a person "
        "said so, or your own judgement."
    ),
]
IdempotencyKey = Annotated[
    Text,
    Field(
        description="Any text that is unique for this report. Send the same again when you repeat "
        "a call that may have got through: it is then stored once."
    ),
]
NewName = Annotated[Text, Field(description="Name of the playbook, at most 120 characters.")]
CloneName = Annotated[
    Text, Field(description="Name of the copy. Empty: the name of the playbook that you clone.")
]
Description = Annotated[
    Text, Field(description="For which tasks the playbook is meant, so that agents can choose it.")
]


class PlaybookItem(BaseModel):
    """One line of the list."""

    id: UUID
    name: str
    description: str
    last_updated: datetime
    bullet_count: int
    outcome_count: int
    is_starter: Annotated[
        bool, Field(description="Shared and cannot learn from you: clone it before you report.")
    ]

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


class PlaybookText(BaseModel):
    """A playbook as agents read it."""

    id: UUID
    name: str
    version: int
    serving_id: str = Field(description="Pass it to report_outcome after the task.")
    content: str = Field(description="The advice; each bullet starts with its [id].")

    @classmethod
    def of(cls, reading: Reading) -> Self:
        return cls(
            id=reading.id,
            name=reading.name,
            version=reading.version,
            serving_id=reading.serving_id,
            content=reading.content,
        )


class PlaybookMade(BaseModel):
    """A playbook that now exists, or that has a new version."""

    id: UUID
    name: str
    version: int

    @classmethod
    def of(cls, playbook: Playbook, version: Version | None = None) -> Self:
        current = version or playbook.current_version
        number = current.number if current is not None else 0
        return cls(id=playbook.pk, name=playbook.name, version=number)


class OutcomeRecorded(BaseModel):
    """The report is stored."""

    outcome_id: UUID
    status: Literal["recorded"] = "recorded"
    pending_outcomes: int = Field(description="Outcomes that wait for the next evolution.")

    @classmethod
    def of(cls, report: Report) -> Self:
        return cls(outcome_id=report.outcome.pk, pending_outcomes=report.pending_outcomes)


class EvolutionTriggered(BaseModel):
    """The evolution that runs or will run."""

    job_id: UUID
    status: str
    is_new: bool = Field(description="false: one was already queued or running, and is returned.")

    @classmethod
    def of(cls, triggered: Triggered) -> Self:
        job = triggered.job
        return cls(job_id=job.pk, status=job.status, is_new=triggered.is_new)


class EvolutionState(BaseModel):
    """Where one evolution stands."""

    job_id: UUID
    status: str = Field(description="queued, running, completed, failed or cancelled.")
    outcomes_processed: int
    started_at: datetime | None
    completed_at: datetime | None
    error_message: str | None = Field(description="Why it failed or what it waits for.")

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


class EvolutionItem(EvolutionState):
    """One line of a playbook's history of evolutions."""

    created_at: datetime
    from_version: int | None
    to_version: int | None = Field(description="null: not finished, or nothing had to change.")

    @classmethod
    def of(cls, job: EvolutionJob) -> Self:
        state = EvolutionState.of(job).model_dump()
        before, after = job.from_version, job.to_version
        return cls(
            **state,
            created_at=job.created_at,
            from_version=before.number if before is not None else None,
            to_version=after.number if after is not None else None,
        )


class VersionItem(BaseModel):
    """One line of a playbook's history of versions."""

    version: int
    reason: str = Field(description="create, evolution, edit, rollback, import or clone.")
    created_at: datetime
    bullet_count: int
    token_count: int = Field(description="Estimated size for a model that reads it.")

    @classmethod
    def of(cls, version: Version) -> Self:
        return cls(
            version=version.number,
            reason=version.reason,
            created_at=version.created_at,
            bullet_count=version.bullet_count,
            token_count=version.token_count,
        )
