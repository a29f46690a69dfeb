"""Models of outcomes, evolution jobs, sessions, trainings and workers."""

from evolution.models.jobs import (
    JOB_STATES,
    EvolutionJob,
    JobQuerySet,
    Reflection,
    TrainingRun,
    TrainingRunQuerySet,
    TrainingStep,
    start_of_day,
)
from evolution.models.outcome_tallies import (
    FIGURES,
    CitationTally,
    OutcomeCounts,
    OutcomeTally,
    ReporterTally,
    Tallies,
)
from evolution.models.outcomes import Case, CaseRun, Correction, Outcome, OutcomeQuerySet
from evolution.models.sessions import (
    AgentSession,
    SessionMessage,
    SessionMessageQuerySet,
    SessionQuerySet,
)
from evolution.models.share_links import ShareLink
from evolution.models.worker import Incident, ProviderCircuit, WorkerHeartbeat

__all__ = [
    "TrainingRunQuerySet",
    "TrainingRun",
    "TrainingStep",
    "AgentSession",
    "Case",
    "CaseRun",
    "Correction",
    "EvolutionJob",
    "Incident",
    "JOB_STATES",
    "JobQuerySet",
    "Outcome",
    "OutcomeQuerySet",
    "OutcomeCounts",
    "OutcomeTally",
    "CitationTally",
    "FIGURES",
    "ReporterTally",
    "Tallies",
    "ProviderCircuit",
    "Reflection",
    "SessionMessage",
    "SessionMessageQuerySet",
    "SessionQuerySet",
    "ShareLink",
    "WorkerHeartbeat",
    "start_of_day",
]
