"""Asks a running server whether it is healthy; as a command it is the container's HEALTHCHECK."""

import http.client
import os
import sys


def connect_host(host: str) -> str:
    """Return the address at which a server listening on `host` is reached from this machine."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - read, not bound


def is_serving(host: str, port: int, *, name: str = "localhost") -> bool:
    """Say whether GET /healthz answers 200 within 2 s; `name` is a host that Django allows."""
    connection = http.client.HTTPConnection(connect_host(host), port, timeout=2)
    # As a TLS proxy sets it; otherwise a server with HTTPS=true answers with a redirect.
    headers = {"Host": name, "X-Forwarded-Proto": "https"}
    try:
        connection.request("GET", "/healthz", headers=headers)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    allowed = os.environ.get("ALLOWED_HOSTS", "").split(",")[0].strip().lstrip(".*")
    port = int(os.environ.get("PORT") or 8000)
    sys.exit(not is_serving("127.0.0.1", port, name=allowed or "localhost"))
