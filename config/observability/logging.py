"""Logging to stderr, one line per record: JSON for log collectors, plain text for people.

Each line carries the id of the request, call or job. Over stdio, stdout belongs to MCP alone.
"""

import logging
import os
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.http.request_id import request_id
from core.optional_imports import without

with without("rich"):  # prints tracebacks in colour: 0.05 s, 5 MB
    import structlog
    from structlog.typing import EventDict, WrappedLogger

ROOT = f"{Path(__file__).parents[2]}{os.sep}"

EXTRA_FIELDS = [
    *("job_id", "playbook_id", "user_id", "tool", "model", "operation"),
    *("took_ms", "status", "tokens"),
]
"""Fields allowed in `extra`: ids and numbers, never text of a playbook or outcome."""


def logging_config(level: str, form: str, *, texts: bool) -> dict[str, Any]:
    """Django's LOGGING; `form` is `json` or `lines`.

    `texts` includes the messages of exceptions (DEBUG). Otherwise only their types and code
    locations are logged: a database error quotes the row, and with it a user's outcome.
    """
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            form: {"()": "config.observability.logging.formatter", "form": form, "texts": texts}
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": form}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django-q": {"level": "WARNING"},
            "mcp": {"level": "WARNING"},
            "oauth2_provider": {"level": "WARNING"},
        },
    }


def formatter(form: str, *, texts: bool) -> logging.Formatter:
    """`json`: one object a line; `lines`: time, level, logger, [id], text."""
    as_json = structlog.processors.JSONRenderer(ensure_ascii=False)
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(allow=EXTRA_FIELDS),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _add_request_id,
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info if texts else _redact_exception,
            as_json if form == "json" else _format_line,
        ],
    )


def _add_request_id(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    event["request_id"] = request_id.get()
    return event


def _redact_exception(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """The types and code locations of an exception and its causes."""
    given = event.pop("exc_info", None)
    if isinstance(given, tuple) and given[1] is not None:
        event["exception"] = " < ".join(_chain(given[1]))
    event.pop("stack_info", None)
    return event


def _chain(error: BaseException | None) -> list[str]:
    found: list[str] = []
    while error is not None and len(found) < 5:
        places = ", ".join(_places(error))
        found.append(f"{type(error).__name__} at {places or 'unknown'}")
        error = error.__cause__ or error.__context__
    return found


def _places(error: BaseException) -> Iterator[str]:
    """Our own last frames, and the one that raised: the rest is how frameworks call each other."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(ROOT)]
    ours = [frame for frame in own if "site-packages" not in frame.filename][-8:]
    for frame in [*ours, *(frames[-1:] if frames[-1:] != ours[-1:] else [])]:
        yield f"{frame.filename.removeprefix(ROOT)}:{frame.lineno}"


def _format_line(logger: WrappedLogger, method: str, event: EventDict) -> str:
    at, level, name = event.pop("timestamp"), event.pop("level"), event.pop("logger", "-")
    known, text = event.pop("request_id", "-"), event.pop("event")
    exception = event.pop("exception", "")
    more = "".join(f" {key}={value}" for key, value in sorted(event.items()))
    line = f"{at} {level.upper()} {name} [{known}] {text}{more}"
    return f"{line}\n{exception}" if exception else line
