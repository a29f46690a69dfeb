"""What h11 refuses and uvicorn's httptools protocol lets pass: endless heads, and unclear hosts."""

from collections.abc import Callable
from typing import Any

from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_UNREAD_BYTES = 65_536
"""Of a head or trailer that has not ended; h11's limit."""
PROGRESS = ("on_headers_complete", "on_body", "on_message_complete")


def check_request_heads() -> None:
    """Answer 400 to a head that grows without end, and unless it names one host (RFC 9112, 3.2).

    The parser took and kept 20 MB of one header. Set on the class, since uvicorn has chosen it
    before it imports the application, and a command line without `--http` must be as safe as ours.
    """
    feed, complete = HttpToolsProtocol.data_received, HttpToolsProtocol.on_headers_complete

    def data_received(self: Any, data: bytes) -> None:
        self.unread = getattr(self, "unread", 0) + len(data)
        feed(self, data)
        if self.unread > MAX_UNREAD_BYTES and not self.transport.is_closing():
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("The head of the request is too long.")

    def on_headers_complete(self: Any) -> None:
        hosts = [name for name, _value in self.headers].count(b"host")
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() == "1.1"):
            raise HttpParserError("not one host")
        complete(self)

    HttpToolsProtocol.data_received = data_received  # type: ignore[method-assign]  # no hook
    HttpToolsProtocol.on_headers_complete = on_headers_complete  # type: ignore[method-assign]  # as above
    for name in PROGRESS:
        setattr(HttpToolsProtocol, name, _counting_anew(getattr(HttpToolsProtocol, name)))


def _counting_anew(callback: Callable[..., None]) -> Callable[..., None]:
    def called(self: Any, *parts: bytes) -> None:
        self.unread = 0
        callback(self, *parts)

    return called
