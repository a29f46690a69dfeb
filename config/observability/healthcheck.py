"""Asks a running server whether it is healthy; as a command it is the container's HEALTHCHECK."""

import http.client
import os
import sys
from contextlib import closing, suppress


def connect_host(host: str) -> str:
    """Return the address at which a server listening on `host` is reached from this machine."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - read, not bound


def is_serving(host: str, port: int) -> bool:
    """Say whether GET /healthz answers 200 within 2 s."""
    connection = http.client.HTTPConnection(connect_host(host), port, timeout=2)
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.HTTPStatus.OK
    return False


if __name__ == "__main__":
    sys.exit(not is_serving("127.0.0.1", int(os.environ.get("PORT") or 8000)))
