"""Staff pages of evolution: stuck and failed jobs, outcomes, sessions; retry, cancel, redrive."""

from evolution.admin import jobs, outcomes

__all__ = ["jobs", "outcomes"]
