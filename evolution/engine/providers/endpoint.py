"""An OpenAI-compatible endpoint: one deadline for a call, a size cap, no redirects, no proxies,
and its refusals as LLMErrors.

Each call has a connection of its own: a kept one that the server has closed looks like a reset, and
beside an answer of seconds a new handshake costs nothing.
"""

import email.utils
import logging
import math
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import httpcore2
import httpx2

from core.http.deadlines import DeadlineBackend, Resolve
from evolution.engine.circuit_breaker import refusal_error
from evolution.engine.llm import (
    CONTEXT_TOO_LONG,
    AnswerError,
    CredentialError,
    LLMError,
    TransientError,
)
from evolution.engine.providers.completion_parser import dict_of, object_of, text_of

if TYPE_CHECKING:
    from openai import OpenAI

Kind = Literal["chat", "models"]
DEFAULT_BASE_URL = "https://api.openai.com/v1"
MAX_REPLY_BYTES = 2 * 1024 * 1024
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
    *("number of tokens to keep", "n_keep"),  # LM Studio
)
CONTENT_FILTER_CODES = ("content_filter", "content_policy_violation", "moderation_blocked")
REFUSALS = {
    401: "key_refused",
    402: "quota_used_up",
    403: "not_allowed",
    404: "not_found",
    405: "not_found",
}
# At DEBUG the SDK writes whole prompts to the log.
logging.getLogger("openai").setLevel(logging.WARNING)


class CancellableConnection:
    """The connection of one call. `cut`, from any thread, ends whatever waits on it."""

    def __init__(self) -> None:
        self._is_cut = threading.Event()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    @property
    def is_cut(self) -> bool:
        return self._is_cut.is_set()

    def wait(self, seconds: float) -> bool:
        """True as soon as it is cut, False after so many seconds."""
        return self._is_cut.wait(seconds)

    def hold(self, connected: socket.socket) -> None:
        """Take over this connection."""
        # A copy of the descriptor: TLS takes the socket's own away, and the number of
        # a closed one may be reused by the time that it is cut.
        copy = socket.socket(fileno=os.dup(connected.fileno()))
        with self._lock:
            self._drop()
            self._socket = copy
            if self.is_cut:
                self._shut()

    def cut(self) -> None:
        """Cancel the call."""
        with self._lock:
            self._is_cut.set()
            self._shut()

    def let_go(self) -> None:
        """Release the connection at the end of the call."""
        with self._lock:
            self._drop()

    def _shut(self) -> None:
        if self._socket is None:
            return
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # the other side was faster

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class _Backend(DeadlineBackend):
    def __init__(
        self, deadline: float, resolve: Resolve | None, wire: CancellableConnection | None
    ) -> None:
        super().__init__(deadline, resolve)
        self._wire = wire

    def connect_tcp(self, *args: Any, **kwargs: Any) -> httpcore2.NetworkStream:
        stream = super().connect_tcp(*args, **kwargs)
        if self._wire is not None:
            self._wire.hold(stream.get_extra_info("socket"))
        return stream


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
        message = "The provider is rate limiting calls (429)."
        return TransientError("rate_limited", message, retry_after=retry_after, costs_attempt=False)
    message = f"The provider failed ({refusal.status})."
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


@dataclass(frozen=True)
class Response:
    """A response whose body is read as somebody asks for it."""

    raw: httpx2.Response

    @property
    def is_refusal(self) -> bool:
        return not 200 <= self.raw.status_code < 300

    def pieces(self) -> Iterator[bytes]:
        """The decoded body, of MAX_REPLY_BYTES at most, whatever encoding the server chose."""
        count = 0
        for piece in self.raw.iter_bytes():
            count += len(piece)
            if count > MAX_REPLY_BYTES:
                raise AnswerError("reply_too_large", "The provider's reply was over 2 MB.")
            yield piece

    def body(self) -> bytes:
        return b"".join(self.pieces())

    def refusal(self) -> Refusal:
        """The response with an error status, for matching."""
        body = self.body()
        payload = object_of(body)
        error = dict_of(payload.get("error")) or payload
        return Refusal(
            status=self.raw.status_code,
            code=text_of(error.get("code")) or text_of(error.get("type")),
            text=body.decode(errors="replace"),
            headers=self.raw.headers,
        )


@dataclass(frozen=True)
class Endpoint:
    """An address and a key, which may be empty.

    With `resolve` a connection goes only to the addresses that it returns. Raises CredentialError
    for an address or a key that cannot be used at all.
    """

    api_key: str = field(repr=False)
    base_url: str
    resolve: Resolve | None = None

    def __post_init__(self) -> None:
        if not (self.api_key.isascii() and self.api_key.isprintable()):
            raise CredentialError("key_refused", "The API key contains invalid characters.")
        try:
            parts = urlsplit(self.base_url)
            usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise CredentialError("not_found", "The base URL isn't an http or https URL. Check it.")

    @contextmanager
    def create(
        self,
        kind: Kind,
        body: Mapping[str, Any],
        deadline: float,
        wire: CancellableConnection | None = None,
    ) -> Iterator[Response]:
        """The response to one request of `deadline` seconds, once its head is there.

        Cutting `wire` ends it. Raises an LLMError, also for what goes wrong while the block reads
        the body.
        """
        # Takes 2 to 3 s: whoever never calls a model does not wait for it.
        import openai  # noqa: PLC0415 - see above

        has_begun = False
        try:
            with ExitStack() as stack:
                transport = _Transport(time.monotonic() + deadline, self.resolve, wire)
                client = stack.enter_context(self._client(openai.OpenAI, transport))
                if kind == "models":
                    call: Any = client.models.with_streaming_response.list()
                else:
                    call = client.chat.completions.with_streaming_response.create(**body)
                try:
                    raw = stack.enter_context(call).http_response
                except openai.APIStatusError as error:
                    raw = error.response
                has_begun = True
                yield Response(raw)
        except (openai.APIConnectionError, httpx2.TransportError, httpx2.DecodingError) as error:
            host = urlsplit(self.base_url).hostname or ""
            cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
            raise _connection_error(cause, host=host, has_begun=has_begun) from None

    def _client(self, make: "type[OpenAI]", transport: httpx2.BaseTransport) -> "OpenAI":
        """The SDK without its retries and redirects, which the job and the ledger decide."""
        http = httpx2.Client(
            transport=transport, headers={"accept-encoding": "identity"}, follow_redirects=False
        )
        # The SDK wants some key; a local server without one reads none.
        return make(
            api_key=self.api_key or "none", base_url=self.base_url, max_retries=0, http_client=http
        )


class _Transport(httpx2.HTTPTransport):
    """One request on a connection of its own, under one deadline."""

    def __init__(
        self, deadline: float, resolve: Resolve | None, wire: CancellableConnection | None
    ) -> None:
        super().__init__(verify=trusted_ssl_context(), trust_env=False)
        # It takes no network backend: its pool is replaced by one with ours.
        self._pool = httpcore2.ConnectionPool(
            ssl_context=trusted_ssl_context(), network_backend=_Backend(deadline, resolve, wire)
        )


def _connection_error(error: BaseException | None, *, host: str, has_begun: bool) -> TransientError:
    """A call that was sent may be charged although nobody answered."""
    is_sent = not isinstance(error, httpx2.ConnectTimeout | httpx2.ConnectError)
    if is_sent and isinstance(error, httpx2.TimeoutException):
        made = TransientError("timeout", f"The provider at {host} did not answer in time.")
    else:
        done = "broke off in the middle of its answer" if has_begun else "could not be reached"
        made = TransientError("connection", f"The provider at {host} {done}.")
    made.is_charged = is_sent
    return made


@cache
def trusted_ssl_context() -> SSLContext:
    """The trusted certificates; read once a process, as reading takes some 20 ms."""
    return httpx2.create_ssl_context()
