"""Staff's view of the loop: what is stuck, what failed and why; retry, cancel, redrive."""

from evolution.admin import jobs, outcomes, sessions, training_runs, worker

__all__ = ["jobs", "outcomes", "sessions", "training_runs", "worker"]
