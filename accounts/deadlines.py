"""Sockets that end at one deadline (a value of time.monotonic), for every call to another host.

A read time-out begins anew with every byte: measured, a dripping server kept one call for 12 s
with a time-out of 2 s. Here every operation on the socket gets only what is left of the call.
"""

import ssl
import time
from typing import Any

import httpcore2


def seconds_left(deadline: float) -> float:
    """Seconds until the deadline; the time-out of httpcore2 when there are none."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise httpcore2.ReadTimeout("the deadline has passed")
    return left


class DeadlineStream(httpcore2.NetworkStream):
    """A stream whose every operation ends at the deadline."""

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
