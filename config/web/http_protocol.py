"""uvicorn's httptools protocol with what h11 refuses or bounds, and httptools does not."""

from typing import Any

from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

MAX_UNREAD_BYTES = 65_536
"""Of a head or trailer that has not ended; h11's limit."""


class StrictHttpProtocol(HttpToolsProtocol):
    """Bounds heads and pipelines, and takes no header from a trailer: see DECISIONS.md."""

    unread, in_head, has_ended = 0, False, False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.open: list[RequestResponseCycle] = []  # being answered: the first runs

    def data_received(self, data: bytes) -> None:
        if self.has_ended:
            return
        self.unread += len(data)
        super().data_received(data)
        if self.unread > MAX_UNREAD_BYTES and not self.transport.is_closing():
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("The head of the request is too long.")

    def connection_lost(self, exc: Exception | None) -> None:
        for cycle in self.open:  # uvicorn tells the last one only
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add it, unless a proxy may have passed it unread: in a trailer (RFC 9110, 6.5.1)."""
        if self.in_head:
            super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        """Begin or queue the request; one that comes before a queued one begins is not read."""
        self.unread, self.in_head = 0, False
        hosts = [name for name, _value in self.headers].count(b"host")
        version = self.parser.get_http_version()
        # RFC 9112, 3.2: one host, and none only in a request of HTTP/1.0.
        if hosts > 1 or version not in {"1.0", "1.1"} or (hosts == 0 and version == "1.1"):
            raise HttpParserError("not one host")
        self.open = [cycle for cycle in self.open if not cycle.response_complete]
        if len(self.open) > 1:
            self.has_ended, self.open[-1].keep_alive = True, False
            return
        super().on_headers_complete()
        self.open.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        self.unread = 0
        if not self.has_ended:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self.unread = 0
        if not self.has_ended:
            super().on_message_complete()
