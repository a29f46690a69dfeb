"""Parses an unchecked streamed chat completion, event by event."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from evolution.engine.llm import AnswerError, ChatRequest, LLMReply, TransientError, Usage
from evolution.engine.prompt_text import clean_text
from evolution.engine.providers.completion_parser import (
    NOT_A_COMPLETION,
    ParsedCompletion,
    dict_of,
    first_of,
    name_of,
    reason_for_none,
    text_of,
    usage_of,
)

DONE = "[DONE]"


def stream_interrupted() -> TransientError:
    """Anew each time: an exception that is raised twice carries both its ways."""
    message = "The provider broke off in the middle of its answer."
    return TransientError("connection", message)


def _malformed() -> AnswerError:
    return AnswerError("malformed", "The provider's stream has a piece that makes no sense.")


def _fault() -> TransientError:
    message = "The provider reports a fault in the middle of its answer."
    return TransientError("provider_fault", message)


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


class StreamParser:
    """Adds up the events of one streamed answer; `reply` is what is known of it so far."""

    def __init__(self, request: ChatRequest, headers: Mapping[str, str]) -> None:
        self._request = request
        self._texts: list[str] = []
        self._usage: Usage | None = None
        self._model, self._id = request.model, name_of(headers.get("x-request-id"))
        self._finish_reason, self._refusal = "", ""
        self._count, self._is_done = 0, False

    def take(self, data: str) -> str:
        """The text that this event brings; raises an LLMError for what is no chunk."""
        if data.strip() == DONE:
            self._is_done = True
            return ""
        chunk = _chunk(data)
        if "error" in chunk:
            raise _fault()
        self._count += "choices" in chunk
        self._usage = usage_of(chunk.get("usage")) or self._usage
        self._model = name_of(chunk.get("model")) or self._model
        self._id = self._id or name_of(chunk.get("id"))
        choice = first_of(chunk.get("choices"))
        self._finish_reason = str(choice.get("finish_reason") or self._finish_reason)
        delta = dict_of(choice.get("delta"))
        self._refusal += text_of(delta.get("refusal"))
        text = clean_text(text_of(delta.get("content")))
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

    @property
    def served(self) -> ParsedCompletion:
        """What it all was, after the last event."""
        reply = self.reply
        if not self._count:
            return ParsedCompletion(reply, NOT_A_COMPLETION)
        if not self._finish_reason and not self._is_done:
            return ParsedCompletion(reply, stream_interrupted())
        message: dict[str, Any] = {"refusal": self._refusal}
        return ParsedCompletion(reply, reason_for_none(self._finish_reason, message, reply.text))


def _chunk(data: str) -> dict[str, Any]:
    # ValueError: no JSON, or a number of thousands of digits.
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        raise _malformed() from None
    if not isinstance(chunk, dict):
        raise _malformed()
    return chunk
