"""Maps the HTTP error of a provider to an LLMError; needs no SDK."""

import email.utils
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

from evolution.engine.circuit_breaker import refusal_error
from evolution.engine.llm import CONTEXT_TOO_LONG, AnswerError, LLMError, TransientError

MAX_RETRY_AFTER = 24 * 3600.0
QUOTA_CODES = {
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_balance",
}
CONTEXT_TOO_LONG_MARKS = (
    "context_length_exceeded",
    "context length",
    "context window",
    "context size",
    "exceed_context_size_error",
    "exceeds the context",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "number of tokens to keep",  # LM Studio
)
CONTENT_FILTER_CODES = ("content_filter", "content_policy_violation", "moderation_blocked")
REFUSALS = {
    401: "key_refused",
    402: "quota_used_up",
    403: "not_allowed",
    404: "not_found",
    405: "not_found",
}


@dataclass(frozen=True)
class Refusal:
    """An answer with an error status. `text` is all that the provider wrote, for matching only."""

    status: int
    code: str
    text: str
    headers: Mapping[str, str]


def map_refusal(refusal: Refusal) -> LLMError:
    """TransientError (wait), CredentialError (a person has to act) or AnswerError (give up)."""
    status = refusal.status
    if refusal.code in QUOTA_CODES:
        return refusal_error("quota_used_up")
    if status in REFUSALS:
        return refusal_error(REFUSALS[status])
    if status < 400:
        return refusal_error("redirected")
    text = f"{refusal.code} {refusal.text}".lower()
    is_too_long = status == 413 or any(words in text for words in CONTEXT_TOO_LONG_MARKS)
    # Local servers say so with a 500, too.
    if is_too_long and status != 429:
        return AnswerError(CONTEXT_TOO_LONG, "The prompt is too long for the model.")
    if status == 429 or status in {408, 409} or status >= 500:
        return _passing(refusal)
    return _unanswerable(refusal, text)


def _passing(refusal: Refusal) -> TransientError:
    retry_after = retry_after_seconds(refusal.headers)
    if refusal.status == 429:
        message = "The provider limits the rate of calls (429)."
        return TransientError("rate_limited", message, retry_after=retry_after, costs_attempt=False)
    message = f"The provider has a fault at the moment ({refusal.status})."
    return TransientError("provider_fault", message, retry_after=retry_after)


def _unanswerable(refusal: Refusal, text: str) -> AnswerError:
    if any(words in text for words in CONTENT_FILTER_CODES):
        return AnswerError("filtered", "The provider's content filter refused the prompt.")
    # The provider's own words may quote the prompt: its code is all we pass on.
    code = refusal.code if refusal.code.replace("_", "").isalnum() else "no code"
    return AnswerError(
        "bad_request", f"The provider refused the request ({refusal.status}, {code[:60]})."
    )


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds (0 to a day) that the headers ask us to wait, or None without such a header."""
    seconds = _number(headers.get("retry-after-ms", ""))
    if seconds is not None:
        seconds /= 1000
    else:
        seconds = _number(headers.get("retry-after", ""))
    if seconds is None:
        seconds = _until(headers.get("retry-after", ""))
    return None if seconds is None else min(max(seconds, 0.0), MAX_RETRY_AFTER)


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
