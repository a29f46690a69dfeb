"""An HTTP transport with a total deadline and a size cap, which the SDK lacks."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from ssl import SSLContext
from typing import Any

import httpcore2
import httpx2

from core.http.deadlines import DeadlineBackend, Resolve, to_httpcore_request


class ReplyTooLarge(Exception):
    """The server sent more than the cap."""


class BoundedTransport(httpx2.BaseTransport):
    """Direct connections, a fresh one for each request; whole replies of at most `max_bytes`.

    A kept connection that the server has closed looks like a reset; beside an answer of seconds a
    new handshake costs nothing. Proxy settings of the environment are ignored: the key goes only
    to the operator's base URL. With `resolve` a connection goes only to the addresses that it
    returns.
    """

    def __init__(self, *, deadline: float, max_bytes: int, resolve: Resolve | None = None) -> None:
        self._deadline = deadline
        self._resolve = resolve
        self._max_bytes = max_bytes
        self._ssl = trusted_ssl_context()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The reply, read to its end; httpx2's own errors, and ReplyTooLarge."""
        backend = DeadlineBackend(time.monotonic() + self._deadline, self._resolve)
        with (
            translate_errors(request),
            httpcore2.ConnectionPool(ssl_context=self._ssl, network_backend=backend) as pool,
        ):
            return self._read(pool.handle_request(to_httpcore_request(request)), request)

    def _read(self, reply: httpcore2.Response, request: httpx2.Request) -> httpx2.Response:
        """The reply with its body decoded and counted, whatever encoding the server chose."""
        streamed = httpx2.Response(
            reply.status, headers=reply.headers, stream=_Body(reply), request=request
        )
        body = bytearray()
        for chunk in streamed.iter_bytes():
            body += chunk
            if len(body) > self._max_bytes:
                raise ReplyTooLarge
        headers = streamed.headers.copy()
        for name in ("content-encoding", "content-length", "transfer-encoding"):
            headers.pop(name, None)
        return httpx2.Response(reply.status, headers=headers, content=bytes(body))


@cache
def trusted_ssl_context() -> SSLContext:
    """The trusted certificates; read once a process, as reading takes some 20 ms."""
    return httpx2.create_ssl_context()


@contextmanager
def translate_errors(request: httpx2.Request) -> Iterator[None]:
    """Faults of the connection as httpx2 names them, which is what the SDK knows."""
    try:
        yield
    except httpcore2.ConnectTimeout as error:
        raise httpx2.ConnectTimeout(str(error), request=request) from error
    except httpcore2.TimeoutException as error:
        raise httpx2.ReadTimeout(str(error), request=request) from error
    except httpcore2.ConnectError as error:
        raise httpx2.ConnectError(str(error), request=request) from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        raise httpx2.ReadError(str(error), request=request) from error


class _Body(httpx2.SyncByteStream):
    def __init__(self, reply: httpcore2.Response) -> None:
        self._reply = reply

    def __iter__(self) -> Any:
        yield from self._reply.iter_stream()

    def close(self) -> None:
        self._reply.close()
