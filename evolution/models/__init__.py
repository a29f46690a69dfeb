"""Models of outcomes, evolution jobs, sessions, trainings and workers."""

from evolution.models.cases import Case, CaseRun
from evolution.models.incidents import Incident
from evolution.models.jobs import JOB_STATES, EvolutionJob, JobQuerySet, start_of_day
from evolution.models.outcome_tallies import (
    FIGURES,
    CitationTally,
    OutcomeCounts,
    OutcomeTally,
    Tallies,
)
from evolution.models.outcomes import Correction, Outcome, OutcomeQuerySet
from evolution.models.provider_circuits import ProviderCircuit
from evolution.models.reflections import Reflection
from evolution.models.sessions import (
    AgentSession,
    SessionMessage,
    SessionMessageQuerySet,
    SessionQuerySet,
)
from evolution.models.share_links import ShareLink
from evolution.models.training_runs import TrainingRun, TrainingRunQuerySet, TrainingStep
from evolution.models.worker_heartbeats import WorkerHeartbeat

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
