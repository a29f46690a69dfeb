"""An OpenAI-compatible endpoint: one deadline for a call, a size cap, no redirects, no proxies.

Each call has a connection of its own: a kept one that the server has closed looks like a reset, and
beside an answer of seconds a new handshake costs nothing.
"""

import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from ssl import SSLContext
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import httpx2

from core.http.deadlines import DeadlineBackend, Resolve, to_httpcore_request
from evolution.engine.llm import AnswerError, CredentialError, TransientError
from evolution.engine.providers.completion_parser import dict_of, object_of, text_of
from evolution.engine.providers.error_mapping import Refusal

DEFAULT_BASE_URL = "https://api.openai.com/v1"
MAX_REPLY_BYTES = 2 * 1024 * 1024


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
    """An address and a key, which may be empty; `deadline`: seconds for a whole call.

    With `resolve` a connection goes only to the addresses that it returns. Raises CredentialError
    for an address or a key that cannot be used at all.
    """

    api_key: str = field(repr=False)
    base_url: str
    deadline: float
    resolve: Resolve | None = None

    def __post_init__(self) -> None:
        if not (self.api_key.isascii() and self.api_key.isprintable()):
            raise CredentialError("key_refused", "The API key has characters that no key can have.")
        try:
            parts = urlsplit(self.base_url)
            usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise CredentialError(
                "not_found", "The base URL is no http or https address. Check it."
            )

    @contextmanager
    def post(
        self, path: str, body: Mapping[str, Any], wire: CancellableConnection | None = None
    ) -> Iterator[Response]:
        """The response to one request, once its head is there; cutting `wire` ends it.

        Raises an LLMError, also for what goes wrong while the block reads the body.
        """
        headers = {"accept-encoding": "identity"}
        if self.api_key:
            headers["authorization"] = f"Bearer {self.api_key}"
        request = httpx2.Request(
            "POST", self.base_url.rstrip("/") + path, json=body, headers=headers
        )
        deadline = time.monotonic() + self.deadline
        backend = _Backend(deadline, self.resolve, wire)
        has_begun = False
        try:
            with httpcore2.ConnectionPool(
                ssl_context=trusted_ssl_context(), network_backend=backend
            ) as pool:
                reply = pool.handle_request(to_httpcore_request(request))
                has_begun = True
                with closing(reply):
                    body_read = _Body(reply)
                    yield Response(
                        httpx2.Response(reply.status, headers=reply.headers, stream=body_read)
                    )
        except (httpcore2.ConnectTimeout, httpcore2.ConnectError) as error:
            # Nothing was sent, so nothing can be charged.
            raise _connection_error(error, has_begun=False, is_charged=False) from None
        except (
            httpcore2.TimeoutException,
            httpcore2.NetworkError,
            httpcore2.ProtocolError,
            httpx2.DecodingError,
        ) as error:
            raise _connection_error(error, has_begun=has_begun) from None


class _Body(httpx2.SyncByteStream):
    def __init__(self, reply: httpcore2.Response) -> None:
        self._reply = reply

    def __iter__(self) -> Iterator[bytes]:
        yield from self._reply.iter_stream()


def _connection_error(
    error: Exception, *, has_begun: bool, is_charged: bool = True
) -> TransientError:
    """A call that was sent may be charged although nobody answered."""
    if isinstance(error, httpcore2.TimeoutException):
        made = TransientError("timeout", "The provider did not answer in time.")
    else:
        done = "broke off in the middle of its answer" if has_begun else "could not be reached"
        made = TransientError("connection", f"The provider {done}.")
    made.is_charged = is_charged
    return made


@cache
def trusted_ssl_context() -> SSLContext:
    """The trusted certificates; read once a process, as reading takes some 20 ms."""
    return httpx2.create_ssl_context()
