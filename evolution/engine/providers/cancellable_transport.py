"""A transport for streamed answers whose connection another thread can cut."""

import os
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import httpcore2
import httpx2

from core.http.deadlines import DeadlineBackend, Resolve, to_httpcore_request
from evolution.engine.providers.bounded_transport import (
    BoundedTransport,
    ReplyTooLarge,
    translate_errors,
)


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


class StreamTransport(BoundedTransport):
    """As BoundedTransport, but the reply is handed on while it comes."""

    def __init__(
        self,
        *,
        deadline: float,
        max_bytes: int,
        wire: CancellableConnection,
        resolve: Resolve | None = None,
    ) -> None:
        super().__init__(deadline=deadline, max_bytes=max_bytes, resolve=resolve)
        self._wire = wire

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The reply's head; its body is read from the connection as somebody asks for it."""
        backend = _HeldBackend(time.monotonic() + self._deadline, self._resolve, self._wire)
        pool = httpcore2.ConnectionPool(ssl_context=self._ssl, network_backend=backend)
        body = _LiveBody(pool, request, self._max_bytes)
        try:
            with translate_errors(request):
                reply = body.reply = pool.handle_request(to_httpcore_request(request))
        except BaseException:
            pool.close()
            raise
        return httpx2.Response(reply.status, headers=reply.headers, stream=body, request=request)


class _LiveBody(httpx2.SyncByteStream):
    def __init__(
        self, pool: httpcore2.ConnectionPool, request: httpx2.Request, max_bytes: int
    ) -> None:
        self._pool, self._request, self._left = pool, request, max_bytes
        self.reply: httpcore2.Response | None = None

    def __iter__(self) -> Iterator[bytes]:
        assert self.reply is not None  # noqa: S101 - narrows the type; set before anyone iterates
        with translate_errors(self._request):
            for piece in self.reply.iter_stream():
                self._left -= len(piece)
                if self._left < 0:
                    raise ReplyTooLarge
                yield piece

    def close(self) -> None:
        if self.reply is not None:
            self.reply.close()
        self._pool.close()


class _HeldBackend(DeadlineBackend):
    def __init__(
        self, deadline: float, resolve: Resolve | None, wire: CancellableConnection
    ) -> None:
        super().__init__(deadline, resolve)
        self._wire = wire

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        stream = super().connect_tcp(host, port, timeout, local_address, socket_options)
        self._wire.hold(stream.get_extra_info("socket"))
        return stream
