"""Options and findings of the checks."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """Command-line options: which checks (none: all), thresholds, whether calls may cost."""

    only: tuple[str, ...] = ()
    min_free_mb: int = 500
    max_skew_seconds: float = 5.0
    spend: bool = False
    llm: bool = False


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


def skipped(detail: str) -> Finding:
    return Finding("skipped", detail)
