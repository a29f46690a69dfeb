"""HTTP client for Stripe: one deadline per request, a size cap, never inside a transaction."""

import time
from collections.abc import Mapping
from typing import Any

import httpcore2
import httpx2
from django.db import connection
from stripe import APIConnectionError, HTTPClient

from core.http.deadlines import DeadlineBackend, to_httpcore_request

SECONDS, MAX_BYTES = 10.0, 8 * 1024 * 1024


class BoundedClient(HTTPClient):
    """One attempt per request; no redirects, no proxies, no persistent connections."""

    name = "ace"

    def __init__(self) -> None:
        super().__init__()
        self._ssl = httpx2.create_ssl_context()

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        post_data: Any = None,
        *,
        _usage: list[str] | None = None,
    ) -> tuple[str, int, Mapping[str, str]]:
        """(body, status, headers). Raises APIConnectionError."""
        if connection.in_atomic_block:
            raise RuntimeError("Stripe must not be called inside a transaction.")
        backend = DeadlineBackend(time.monotonic() + SECONDS)
        content = post_data.encode() if isinstance(post_data, str) else post_data
        request = httpx2.Request(method.upper(), url, headers=headers, content=content)
        try:
            with httpcore2.ConnectionPool(ssl_context=self._ssl, network_backend=backend) as pool:
                return _read_body(pool.handle_request(to_httpcore_request(request)))
        except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError) as e:
            raise _connection_error(type(e).__name__) from e

    def close(self) -> None:
        """No connection is kept open."""


def _connection_error(reason: str) -> APIConnectionError:
    return APIConnectionError(f"Stripe gave no answer: {reason}.")  # type: ignore[no-untyped-call]  # theirs


def _read_body(answer: httpcore2.Response) -> tuple[str, int, Mapping[str, str]]:
    body = bytearray()
    try:
        for chunk in answer.iter_stream():
            body += chunk
            if len(body) > MAX_BYTES:
                raise _connection_error("too large")
    finally:
        answer.close()
    return body.decode(), answer.status, httpx2.Headers(answer.headers)
