"""Parses an unchecked chat completion, whole or streamed: the text, and the tokens it cost."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from evolution.engine.llm import AnswerError, ChatRequest, LLMError, LLMReply, TransientError, Usage
from evolution.engine.prompt_text import clean_text

MAX_REPORTED_TOKENS = 100_000_000
NAME_LIMIT = 100
DONE = "[DONE]"


class CompletionParser:
    """Adds up one answer, a whole body or events; `reply` is what is known of it so far."""

    def __init__(self, request: ChatRequest) -> None:
        self._request = request
        self._texts: list[str] = []
        self._usage: Usage | None = None
        self._model, self._id = request.model, ""
        self._finish_reason, self._refusal = "", ""
        self._count, self._is_done = 0, False

    def begin(self, headers: Mapping[str, str]) -> None:
        """The head of the response is there."""
        self._id = name_of(headers.get("x-request-id"))

    def read(self, body: bytes) -> str:
        """The text of a whole answer."""
        self._is_done = True
        return self._take(object_of(body), "message")

    def take(self, data: str) -> str:
        """The text that this event brings; raises an LLMError for what is no chunk."""
        if data.strip() == DONE:
            self._is_done = True
            return ""
        # ValueError: no JSON, or a number of thousands of digits.
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            chunk = None
        if not isinstance(chunk, dict):
            raise AnswerError("malformed", "The provider's stream contains an invalid chunk.")
        if "error" in chunk:
            message = "The provider reported an error in the middle of its response."
            raise TransientError("provider_fault", message)
        return self._take(chunk, "delta")

    def _take(self, payload: dict[str, Any], part: str) -> str:
        self._count += "choices" in payload
        self._usage = usage_of(payload.get("usage")) or self._usage
        self._model = name_of(payload.get("model")) or self._model
        self._id = self._id or name_of(payload.get("id"))
        choices = payload.get("choices")
        choice = dict_of(choices[0]) if isinstance(choices, list) and choices else {}
        self._finish_reason = str(choice.get("finish_reason") or self._finish_reason)
        message = dict_of(choice.get(part))
        self._refusal += text_of(message.get("refusal"))
        text = clean_text(text_of(message.get("content")))
        self._texts.append(text)
        return text

    @property
    def reply(self) -> LLMReply:
        text = "".join(self._texts)
        return LLMReply(
            text=text,
            usage=self._usage or Usage.estimate(self._request, text),
            model=self._model,
            request_id=self._id,
            finish_reason=self._finish_reason or "stop",
        )

    def check(self) -> None:
        """Raise an LLMError unless it all was an answer: a status of 200 is not yet one."""
        error: LLMError | None = None
        if not self._count:
            error = TransientError(
                "not_a_completion", "The response is not a chat completion. Check the base URL."
            )
        elif not self._finish_reason and not self._is_done:
            message = "The provider's response broke off."
            error = TransientError("connection", message)
        elif self._finish_reason == "content_filter":
            error = AnswerError("filtered", "The provider's content filter stopped the answer.")
        elif self._refusal:
            error = AnswerError("refused", "The model refused to answer.")
        elif not any(self._texts) and self._finish_reason != "length":
            error = AnswerError("empty", "The model returned an empty answer.")
        if error is not None:
            raise error


def events(pieces: Iterable[bytes]) -> Iterator[str]:
    """The data of each server-sent event; comments and other fields are skipped."""
    data: list[str] = []
    for line in _lines(pieces):
        if not line:
            if data:
                yield "\n".join(data)
            data = []
        elif line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" ").decode(errors="replace"))
    if data:
        yield "\n".join(data)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest: list[bytes] = []
    for piece in pieces:
        # Joined once a line, not once a piece: a line may come byte by byte.
        *whole, last = piece.split(b"\n")
        if whole:
            yield b"".join([*rest, whole[0]]).removesuffix(b"\r")
            yield from (line.removesuffix(b"\r") for line in whole[1:])
            rest = []
        rest.append(last)
    if any(rest):
        yield b"".join(rest).removesuffix(b"\r")


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


def dict_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def name_of(value: Any) -> str:
    return clean_text(value)[:NAME_LIMIT] if isinstance(value, str) else ""
