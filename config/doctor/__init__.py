"""The checks of `manage.py doctor`.

A check never prints a secret: findings consist of fixed phrases, numbers and names.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """`status`: ok, warning, failed or skipped; `advice` is what to do."""

    status: str
    detail: str
    advice: str = ""


def ok(detail: str) -> Finding:
    return Finding("ok", detail)


def warning(detail: str, advice: str) -> Finding:
    return Finding("warning", detail, advice)


def failed(detail: str, advice: str) -> Finding:
    return Finding("failed", detail, advice)


def describe_error(error: BaseException) -> str:
    """The operating system's words for it or its cause, else the name of its class.

    Not its message: those of libraries may quote an address with its password.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror.lower()
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__
