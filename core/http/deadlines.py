"""HTTP connections with one deadline (a time.monotonic value) for calls to other hosts.

A read timeout restarts with every byte: a dripping server kept one call for 12 s with a timeout
of 2 s (measured). Here every operation on the socket gets only the time left of the call.
"""

import ssl
import time
from collections.abc import Callable, Iterable
from typing import Any

import httpcore2
import httpx2

CONNECT_SECONDS = 10.0
Resolve = Callable[[str, int], list[str]]
"""Returns the addresses to connect to for a host and port; raises when there are none."""


def seconds_left(deadline: float) -> float:
    """Seconds until the deadline. Raises httpcore2.ReadTimeout when it has passed."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise httpcore2.ReadTimeout("the deadline has passed")
    return left


class DeadlineStream(httpcore2.NetworkStream):
    """A network stream whose operations all end at the deadline."""

    def __init__(self, stream: httpcore2.NetworkStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, seconds_left(self._deadline))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, seconds_left(self._deadline))

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        left = seconds_left(self._deadline)
        secured = self._stream.start_tls(ssl_context, server_hostname, left)
        return DeadlineStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def close(self) -> None:
        self._stream.close()


class DeadlineBackend(httpcore2.NetworkBackend):
    """Sockets that share one deadline; with `resolve`, they connect only to its addresses."""

    def __init__(self, deadline: float, resolve: Resolve | None = None) -> None:
        self._deadline = deadline
        self._resolve = resolve
        self._inner = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        for address in self._resolve(host, port) if self._resolve else [host]:
            # The addresses of a host are tried one after the other, each with this timeout.
            left = min(CONNECT_SECONDS, seconds_left(self._deadline))
            try:
                stream = self._inner.connect_tcp(address, port, left, local_address, socket_options)
            except httpcore2.ConnectError:
                continue
            return DeadlineStream(stream, self._deadline)
        raise httpcore2.ConnectError("no address answered")


def to_httpcore_request(request: httpx2.Request) -> httpcore2.Request:
    """The request in the type that httpcore2 takes."""
    return httpcore2.Request(
        method=request.method,
        url=httpcore2.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        ),
        headers=request.headers.raw,
        content=request.read(),
    )
