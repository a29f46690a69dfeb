"""A live server for the package and the hooks, and one that takes its time."""

import http.server
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from tests.harness.live_server import live_url

__all__ = ["live_url"]
DELAY = 1.6


@pytest.fixture
def slow_proxy() -> Iterator[Callable[[str], str]]:
    """Give the address of a server to get one that passes POSTs on after 1.6 s."""
    servers: list[http.server.ThreadingHTTPServer] = []

    def serve(target: str) -> str:
        class Slow(http.server.BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

            def do_POST(self) -> None:
                time.sleep(DELAY)  # what is tested is that nobody waits for it
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = urllib.request.Request(target + self.path, body, method="POST")  # noqa: S310
                for name in ("Authorization", "Content-Type", "Accept", "MCP-Protocol-Version"):
                    request.add_header(name, self.headers[name])
                with urllib.request.urlopen(request) as answer:  # noqa: S310
                    content = answer.read()
                    self.send_response(answer.status)
                self.end_headers()
                self.wfile.write(content)

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()
