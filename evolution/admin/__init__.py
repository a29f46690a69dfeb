"""Staff pages of evolution: stuck and failed jobs, outcomes, sessions; retry, cancel, redrive."""

from evolution.admin import jobs, outcomes, sessions, worker

__all__ = ["jobs", "outcomes", "sessions", "worker"]
