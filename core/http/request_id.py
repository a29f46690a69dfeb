"""The id that one request, call or job carries through logs, audit entries and answers."""

from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="-")
"""Set by config.web.middleware and config.asgi for a request, by the worker for a job."""
