"""What a worker group gets ready before it forks its workers, so that no job waits for it."""

from django.conf import settings
from django.db import connections

CONNECTION_MAX_AGE = 60


def prepare_worker() -> None:
    """Connections outlive one task, and a model's SDK is imported, if a model is to be called.

    Without the first, PostgreSQL would see a new connection for each look at the queue, and for
    each call of a model two. The second takes seconds, and workers share what is imported here.
    """
    for alias in connections:
        connections[alias].settings_dict["CONN_MAX_AGE"] = CONNECTION_MAX_AGE
    if settings.ACE_ENGINE != "rules":
        import evolution.engine.providers.llm_engine  # noqa: PLC0415 - see above
        import evolution.engine.providers.openai  # noqa: F401, PLC0415 - to have it; see above


WORKER_ID_VARIABLE = "ACE_WORKER_ID"
