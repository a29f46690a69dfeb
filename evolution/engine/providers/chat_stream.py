"""Streamed chat completions of any OpenAI-compatible endpoint: one physical call, metered.

Importing this module imports the SDK; see `endpoint`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import httpx2
import openai

from core.http.deadlines import Resolve
from evolution.engine.llm import (
    Cancelled,
    ChatRequest,
    Ledger,
    LLMError,
    LLMReply,
    TransientError,
    Usage,
)
from evolution.engine.providers.bounded_transport import ReplyTooLarge
from evolution.engine.providers.cancellable_transport import CancellableConnection, StreamTransport
from evolution.engine.providers.completion_parser import ParsedCompletion, read_reply
from evolution.engine.providers.endpoint import (
    MAX_REPLY_BYTES,
    FailedCall,
    make_client_over,
    metered_call,
    provider_errors,
    reply_too_large,
)
from evolution.engine.providers.openai import Dialect
from evolution.engine.providers.stream_parser import StreamParser, events, stream_interrupted

OnText = Callable[[str], None]
EVENT_STREAM = "text/event-stream"


class ChatLLM:
    """One endpoint with one key, for one conversation's turn; cutting the `wire` ends it.

    `deadline`: seconds for a whole call, connection to last byte. Raises CredentialError for a
    base URL or a key that cannot be used at all.
    """

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str | None,
        deadline: float,
        ledger: Ledger,
        wire: CancellableConnection,
        resolve: Resolve | None = None,
    ) -> None:
        transport = StreamTransport(
            deadline=deadline, max_bytes=MAX_REPLY_BYTES, wire=wire, resolve=resolve
        )
        self._client = make_client_over(transport, api_key=api_key, base_url=base_url)
        self._ledger, self._wire = ledger, wire
        self._dialect = Dialect()

    def chat(self, request: ChatRequest, say: OnText) -> LLMReply:
        """One physical call, written in the ledger before and after; raises an LLMError."""
        return metered_call(self._ledger, request, lambda: self._until_cut(request, say))

    def _until_cut(self, request: ChatRequest, say: OnText) -> LLMReply:
        """The reply; a call whose wire was cut is `cancelled`, however it ended."""
        try:
            return self._call(request, say)
        except FailedCall as failed:
            error = Cancelled() if self._wire.is_cut else failed.error
            raise FailedCall(error, failed.usage, failed.request_id) from None
        finally:
            self._wire.let_go()

    def _call(self, request: ChatRequest, say: OnText) -> LLMReply:
        if self._wire.is_cut:  # while it waited for its turn: nothing was sent
            raise FailedCall(Cancelled(), Usage())
        with provider_errors(Usage.estimate(request), self._refused):
            try:
                with self._client.chat.completions.with_streaming_response.create(
                    model=request.model,
                    messages=request.messages,  # type: ignore[arg-type]  # plain dicts
                    stream=True,
                    **self._dialect.chat_parameters(request),
                ) as response:
                    return _listen(response, request, say)
            except (httpx2.TransportError, ReplyTooLarge):  # while an error's body was read
                raise FailedCall(stream_interrupted(), Usage()) from None

    def _refused(self, error: openai.APIStatusError) -> FailedCall:
        failed, self._dialect = self._dialect.after(error)
        return failed


def _listen(response: Any, request: ChatRequest, say: OnText) -> LLMReply:
    """The whole reply, each piece passed to `say` as it comes; raises FailedCall."""
    chunks = StreamParser(request, response.headers)
    try:
        served = _served(response, request, chunks, say)
    except LLMError as error:
        served = ParsedCompletion(chunks.reply, error)
    except httpx2.TimeoutException:
        late = TransientError("timeout", "The provider did not finish its answer in time.")
        served = ParsedCompletion(chunks.reply, late)
    except (httpx2.TransportError, httpx2.DecodingError):
        served = ParsedCompletion(chunks.reply, stream_interrupted())
    except ReplyTooLarge:
        served = ParsedCompletion(chunks.reply, reply_too_large())
    if served.error is not None:
        raise FailedCall(served.error, served.reply.usage, served.reply.request_id)
    return served.reply


def _served(
    response: Any, request: ChatRequest, chunks: StreamParser, say: OnText
) -> ParsedCompletion:
    pieces = _capped(response.iter_bytes())
    if EVENT_STREAM not in response.headers.get("content-type", EVENT_STREAM):
        return _whole(pieces, response, request, say)
    for data in events(pieces):
        if text := chunks.take(data):
            say(text)
    return chunks.served


def _whole(
    pieces: Iterable[bytes], response: Any, request: ChatRequest, say: OnText
) -> ParsedCompletion:
    """The reply of a server that does not stream although it was asked to."""
    served = read_reply(b"".join(pieces), response.headers, request)
    if served.reply.text:
        say(served.reply.text)
    return served


def _capped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces as decoded; StreamTransport counts them as they were sent."""
    count = 0
    for piece in pieces:
        count += len(piece)
        if count > MAX_REPLY_BYTES:
            raise ReplyTooLarge
        yield piece
