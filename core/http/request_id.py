"""The id of a request, call or job in logs, audit entries and responses, and who asked."""

from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="-")
"""Set by config.web.middleware and config.asgi for a request, by the worker for a job."""
caller_id: ContextVar[str] = ContextVar("caller_id", default="")
"""The account of a request, for its line in the log; empty for strangers."""
