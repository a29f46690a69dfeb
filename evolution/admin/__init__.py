"""Staff's view of the loop: what is stuck, what failed and why; retry, cancel, redrive."""

from evolution.admin import jobs, loop, sessions

__all__ = ["jobs", "loop", "sessions"]
