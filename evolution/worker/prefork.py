"""Prepares a worker group before it forks its workers."""

from django.conf import settings
from django.db import connections

CONNECTION_MAX_AGE = 60
WORKER_ID_VARIABLE = "ACE_WORKER_ID"


def prepare_worker() -> None:
    """Keep connections over tasks, and import the LLM SDK where a model is configured.

    Without the first, each poll of the queue would open a connection, and each LLM call two. The
    import takes seconds, and forked workers share it.
    """
    for alias in connections:
        connections[alias].settings_dict["CONN_MAX_AGE"] = CONNECTION_MAX_AGE
    if settings.ACE_ENGINE != "rules":
        import evolution.engine.providers.llm_engine  # noqa: PLC0415 - see above
        import evolution.engine.providers.openai  # noqa: F401, PLC0415 - to have it; see above
