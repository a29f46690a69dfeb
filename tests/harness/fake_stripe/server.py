"""The fake Stripe as a server on loopback, and its controls for tests."""

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.harness.fake_stripe import clocks as clocks  # registers its routes
from tests.harness.fake_stripe import pages
from tests.harness.fake_stripe.api import Api, Gate, nested
from tests.harness.fake_stripe.delivery import Sent, deliver, plan
from tests.harness.fake_stripe.world import DAY, Data, Missing, World


class FakeStripe:
    """The server's URL, its objects and its webhook delivery."""

    def __init__(self, base: str, now: int) -> None:
        self.base = base
        self.world = World(now)
        self.api = Api(self.world, base)
        self.delivered = 0

    def fail(self, *statuses: int) -> None:
        """Make the next API calls fail with these statuses."""
        self.api.faults += statuses

    def hold(self, path: str) -> Gate:
        """Hold the next response of this path until the gate is opened."""
        gate = Gate()
        self.api.gates[path] = gate
        return gate

    def advance(self, days: float) -> None:
        with self.world.lock:
            self.world.advance(int(days * DAY))

    def deliver(
        self,
        *,
        copies: int = 1,
        bad_share: float = 0,
        seed: int = 0,
        at_once: int = 1,
        again: bool = False,
    ) -> list[Sent]:
        """Send new events to every endpoint; in order unless copied or forged.

        `again`: everything since the beginning.
        """
        with self.world.lock:
            fresh = self.world.events[0 if again else self.delivered :]
            self.delivered = len(self.world.events)
            endpoints = self.world.every("webhook_endpoint", status="enabled")
        rng = random.Random(seed)
        sent = plan(fresh, endpoints, copies=copies, bad_share=bad_share, rng=rng)
        return deliver(sent, at_once=at_once)

    def subscription(self) -> Data:
        """The newest subscription."""
        return self.world.every("subscription")[0]


@contextmanager
def fake_stripe(*, days_ago: float = 0) -> Iterator[FakeStripe]:
    """A fake Stripe with its clock some days ago."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Desk)
    server.daemon_threads = True
    base = f"http://127.0.0.1:{server.server_address[1]}"
    fake = FakeStripe(base, int(time.time() - days_ago * DAY))
    server.fake = fake  # type: ignore[attr-defined]  # read by the handler
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Desk(BaseHTTPRequestHandler):
    """API calls as JSON, pages as HTML."""

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def do_DELETE(self) -> None:
        self._serve("DELETE")

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def _serve(self, method: str) -> None:
        fake: FakeStripe = self.server.fake  # type: ignore[attr-defined]  # as above
        address = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        text = self.rfile.read(length).decode() if length else address.query
        first, _, pk = address.path.strip("/").partition("/")
        if first in {"pay", "portal"}:
            self._page(fake, method, first, pk, text)
            return
        status, body = fake.api.answer(method, address.path, text, self.headers)
        self._answer(status, json.dumps(body), "application/json")

    def _page(self, fake: FakeStripe, method: str, kind: str, pk: str, text: str) -> None:
        try:
            if method == "POST":
                status, page, goal = pages.send(fake.world, kind, pk, nested(text))
            else:
                status, page, goal = pages.show(fake.world, kind, pk)
        except Missing:
            status, page, goal = 404, "gone", ""
        self._answer(status, page, "text/html; charset=utf-8", goal)

    def _answer(self, status: int, text: str, kind: str, goal: str = "") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Request-Id", "req_fake")
        if goal:
            self.send_header("Location", goal)
        # The client may have disconnected at its deadline.
        with suppress(ConnectionError):
            self.end_headers()
            self.wfile.write(body)
