"""Servers of others, as small as the doctor's questions: one answer each."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def endpoint(status: int, body: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """An HTTP server with this one answer; yields its address and what it was asked."""
    asked: list[str] = []

    class Door(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            asked.append(f"{self.command} {self.path}")
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = answer

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def mail_server(verdict: bytes) -> Iterator[int]:
    """An SMTP server that offers AUTH PLAIN and answers one login with `verdict`."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        thread = threading.Thread(target=_greet, args=(listener, verdict))
        thread.start()
        yield listener.getsockname()[1]
        thread.join(10)


def _greet(listener: socket.socket, verdict: bytes) -> None:
    there, _ = listener.accept()
    with there, there.makefile("rb") as lines:
        there.sendall(b"220 mail\r\n")
        for line in lines:
            word = line[:4].upper()
            if word == b"EHLO":
                there.sendall(b"250-mail\r\n250 AUTH PLAIN\r\n")
            elif word == b"AUTH":
                there.sendall(verdict)
            else:
                there.sendall(b"221 bye\r\n")
                return
