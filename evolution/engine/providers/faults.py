"""What an HTTP status of a provider means for the job (RELIABILITY.md R2), without any SDK."""

import email.utils
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

from evolution.engine.llm import (
    CONTEXT_TOO_LONG,
    AnswerError,
    CredentialError,
    LLMError,
    TransientError,
)

LONGEST_RETRY_AFTER = 24 * 3600.0
QUOTA_CODES = {
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_balance",
}
TOO_LONG = ("context_length_exceeded", "context length", "context window", "prompt is too long")
FILTERED = ("content_filter", "content_policy_violation", "moderation_blocked")
CREDENTIAL_MESSAGES = {
    401: "The provider refused the API key. Set a valid one.",
    402: "The provider's quota is used up. Add credit there, or use another key.",
    403: "The provider does not let this API key use the model. Use another key or model.",
    404: "The provider has no such model or address. Check the model's name and the base URL.",
    405: "The base URL is not that of an OpenAI-compatible API. Check it.",
}


@dataclass(frozen=True)
class Refusal:
    """An answer with an error status. `said` is all that the provider wrote, for matching only."""

    status: int
    code: str
    said: str
    headers: Mapping[str, str]


def judge(refusal: Refusal) -> LLMError:
    """Wait, tell a person, or give up on this one question."""
    status = refusal.status
    if refusal.code in QUOTA_CODES:
        return CredentialError("quota_used_up", CREDENTIAL_MESSAGES[402])
    if status in CREDENTIAL_MESSAGES:
        return CredentialError(_credential_code(status), CREDENTIAL_MESSAGES[status])
    if status < 400:
        return CredentialError(
            "redirected", "The base URL redirects. Set it to the address where that leads."
        )
    if status == 429 or status in {408, 409} or status >= 500:
        return _passing(refusal)
    return _unanswerable(refusal)


def _credential_code(status: int) -> str:
    return {401: "key_refused", 402: "quota_used_up", 403: "not_allowed"}.get(status, "not_found")


def _passing(refusal: Refusal) -> TransientError:
    retry_after = retry_after_seconds(refusal.headers)
    if refusal.status == 429:
        message = "The provider limits the rate of calls (429)."
        return TransientError("rate_limited", message, retry_after=retry_after, costs_attempt=False)
    message = f"The provider has a fault at the moment ({refusal.status})."
    return TransientError("provider_fault", message, retry_after=retry_after)


def _unanswerable(refusal: Refusal) -> AnswerError:
    said = f"{refusal.code} {refusal.said}".lower()
    if refusal.status == 413 or any(words in said for words in TOO_LONG):
        return AnswerError(CONTEXT_TOO_LONG, "The prompt is too long for the model.")
    if any(words in said for words in FILTERED):
        return AnswerError("filtered", "The provider's content filter refused the prompt.")
    # The provider's own words may quote the prompt: its code is all we pass on.
    code = refusal.code if refusal.code.replace("_", "").isalnum() else "no code"
    return AnswerError(
        "bad_request", f"The provider refused the request ({refusal.status}, {code[:60]})."
    )


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds (0 to a day) that the headers ask us to wait, or None when they do not say."""
    seconds = _number(headers.get("retry-after-ms", ""))
    if seconds is not None:
        seconds /= 1000
    else:
        seconds = _number(headers.get("retry-after", ""))
    if seconds is None:
        seconds = _until(headers.get("retry-after", ""))
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_RETRY_AFTER)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _until(date: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return None
