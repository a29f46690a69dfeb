"""Parses an unchecked chat completion: the text, and the tokens it cost."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evolution.engine.llm import (
    AnswerError,
    ChatRequest,
    LLMError,
    LLMReply,
    TransientError,
    Usage,
)
from evolution.engine.prompt_text import clean_text

MAX_REPORTED_TOKENS = 100_000_000
NAME_LIMIT = 100


@dataclass(frozen=True)
class ParsedCompletion:
    """A response with status 200: the reply with its usage, and why it is unusable, if so."""

    reply: LLMReply
    error: LLMError | None = None


def read_reply(body: bytes, headers: Mapping[str, str], request: ChatRequest) -> ParsedCompletion:
    """A 200 is not yet an answer: choices, finish_reason, refusal and content are checked."""
    payload = object_of(body)
    choice = first_of(payload.get("choices"))
    message = dict_of(choice.get("message"))
    text = text_of(message.get("content"))
    finish_reason = str(choice.get("finish_reason") or "stop")
    reply = LLMReply(
        text=text,
        usage=usage_of(payload.get("usage")) or Usage.estimate(request, text),
        model=name_of(payload.get("model")) or request.model,
        request_id=name_of(headers.get("x-request-id")) or name_of(payload.get("id")),
        finish_reason=finish_reason,
    )
    if "choices" not in payload:
        return ParsedCompletion(reply, NOT_A_COMPLETION)
    return ParsedCompletion(reply, reason_for_none(finish_reason, message, text))


NOT_A_COMPLETION = TransientError(
    "not_a_completion",
    "The address answered with something that is no chat completion. Check the base URL.",
)


def reason_for_none(finish_reason: str, message: dict[str, Any], text: str) -> LLMError | None:
    if finish_reason == "content_filter":
        return AnswerError("filtered", "The provider's content filter stopped the answer.")
    if message.get("refusal"):
        return AnswerError("refused", "The model refused to answer.")
    if not text and finish_reason != "length":
        return AnswerError("empty", "The model gave an empty answer.")
    return None


def object_of(body: bytes) -> dict[str, Any]:
    # ValueError: no JSON, or no UTF-8, or a number of thousands of digits.
    try:
        return dict_of(json.loads(body))
    except (ValueError, RecursionError):
        return {}


def usage_of(reported: Any) -> Usage | None:
    """What the provider reports, or None when it does not or the figures make no sense."""
    usage = dict_of(reported)
    sent, received = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if sent is None or received is None:
        return None
    cached = _count(dict_of(usage.get("prompt_tokens_details")).get("cached_tokens")) or 0
    total = _count(usage.get("total_tokens"))
    return Usage(sent, received, min(cached, sent), sent + received if total is None else total)


def _count(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value <= MAX_REPORTED_TOKENS else None


def text_of(content: Any) -> str:
    """A string, or the text parts of a list, as some compatible servers send it."""
    if isinstance(content, list):
        return "".join(text_of(dict_of(part).get("text")) for part in content)
    return content if isinstance(content, str) else ""


def first_of(value: Any) -> dict[str, Any]:
    return dict_of(value[0]) if isinstance(value, list) and value else {}


def dict_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def name_of(value: Any) -> str:
    return clean_text(value)[:NAME_LIMIT] if isinstance(value, str) else ""
