"""Where log lines go and what they look like."""

from typing import Any


def lines_on_stderr(level: str) -> dict[str, Any]:
    """Django's LOGGING: one line a record with the request's id, on stderr.

    On the stdio transport of MCP nothing but the protocol may be on stdout.
    """
    line = "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"request_id": {"()": "config.middleware.RequestIdFilter"}},
        "formatters": {"line": {"format": line}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "line",
                "filters": ["request_id"],
            }
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {"django-q": {"level": "WARNING"}, "mcp": {"level": "WARNING"}},
    }
