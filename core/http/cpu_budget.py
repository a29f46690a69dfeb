"""The CPU that a request may cost, and the log line of one that costs more.

A thread cannot be stopped in CPython (docs/DECISIONS.md): limits on what requests contain keep them
cheap, and this says where a limit is missing.
"""

import logging

CPU_BUDGET = 0.25
"""Seconds of CPU."""
logger = logging.getLogger(__name__)


def log_if_over_budget(what: str, seconds: float) -> None:
    """Warn of a request over the budget; the log line has the request's id."""
    if seconds > CPU_BUDGET:
        logger.warning("A request cost %d ms of CPU: %s", 1000 * seconds, what)
