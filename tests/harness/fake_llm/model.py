"""A model made of fixed rules behind a real HTTP server that speaks OpenAI chat completions.

    with FakeLLM() as llm:
        OpenAILLM(api_key="x", base_url=llm.base_url, deadline=5, ledger=ledger)
        llm.fail("reflector", status=500)               # the next call of that role
        llm.fail("curator", "truncated", times=2)       # a Fault by name
        llm.say("curator", {"operations": []})          # an answer of your own
        gate = llm.hold("reflector"); gate.wait_for(3); gate.open()
        llm.latency, llm.slots = 0.2, Semaphore(1)      # one answer at a time
        assert llm.count("reflector") == 1 and llm.served_tokens == metered

By hand: `python -m tests.harness.fake_llm.model --port 9000`, with `[--latency 0.5]` and
`[--fail reflector:500:2]`.
"""

import argparse
import threading
from collections import defaultdict, deque
from contextlib import nullcontext
from types import TracebackType
from typing import Any, Self

from tests.harness.fake_llm.answers import answer, spoken
from tests.harness.fake_llm.http import FAULTS, Call, Fault, RequestHandler, Server
from tests.harness.fake_llm.stream import Drip

ALWAYS = 1_000_000


class Gate:
    """Holds answers back, from the one after the first `after`, until it is opened."""

    def __init__(self, after: int = 0) -> None:
        self._after = after
        self._opened = threading.Event()
        self._arrival = threading.Condition()
        self.arrived = 0

    def pass_through(self) -> None:
        with self._arrival:
            self.arrived += 1
            self._arrival.notify_all()
            free = self.arrived <= self._after
        if not free:
            self._opened.wait()

    def wait_for(self, calls: int, *, timeout: float = 60) -> None:
        """Returns when that many calls came (AssertionError after `timeout` seconds)."""
        with self._arrival:
            came = self._arrival.wait_for(lambda: self.arrived >= calls, timeout)
        assert came, f"{self.arrived} of {calls} calls arrived"

    def open(self) -> None:
        self._opened.set()


class FakeLLM:
    """The server; its figures and faults may be read and set while it runs."""

    def __init__(self, *, port: int = 0, latency: float = 0, verbose: bool = False) -> None:
        self.requests: list[Call] = []
        self.served_tokens = 0
        self.latency, self.verbose = latency, verbose
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self._faults: dict[str, deque[list[Any]]] = defaultdict(deque)
        self._sayings: dict[str, deque[dict[str, Any]]] = defaultdict(deque)
        self._gates: dict[str, Gate] = {}
        self._refused: set[str] = set()
        self.slots: threading.Semaphore | None = None
        self.drips: Drip | None = None
        self._server = Server(("127.0.0.1", port), type("Bound", (RequestHandler,), {"llm": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        for gate in self._gates.values():
            gate.open()
        if self.drips is not None:
            self.drips.free()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def count(self, role: str = "") -> int:
        """Physical calls that came in, of one role or of all."""
        return sum(not role or call.role == role for call in list(self.requests))

    def fail(
        self,
        role: str,
        kind: str = "status",
        *,
        times: int = 1,
        status: int = 0,
        code: str = "",
        message: str = "made to fail",
        retry_after: str | None = None,
    ) -> None:
        """The next `times` calls of the role fail so (`times=ALWAYS`: all)."""
        assert kind == "status" or kind in FAULTS, kind
        headers = {} if retry_after is None else {"retry-after": retry_after}
        fault = Fault(kind, status, code, message, headers)
        with self.lock:
            self._faults[role].append([times, fault])

    def say(self, role: str, *answers: dict[str, Any]) -> None:
        """The next calls of the role are answered with these."""
        with self.lock:
            self._sayings[role].extend(answers)

    def tell(self, *pieces: str) -> None:
        """The next streamed answer (role `chat`), in these pieces."""
        self.say("chat", {"pieces": list(pieces)})

    def drip(self) -> Drip:
        """Pieces of streamed answers go out one by one, when `let` says so, from now on."""
        self.drips = Drip()
        return self.drips

    def refuse(self, *names: str) -> None:
        """Answer 400 to `json_schema`, `json_object` or a parameter such as `max_tokens`."""
        self._refused |= set(names)

    def hold(self, role: str, *, after: int = 0) -> Gate:
        """Answers of the role wait until the gate is opened (the end of the `with` opens it).

        The first `after` answers still go out.
        """
        return self._gates.setdefault(role, Gate(after))

    def take(self, call: Call) -> tuple[Fault | None, dict[str, Any]]:
        """Note the call; what should go wrong with it, and what to answer."""
        with self.lock:
            self.requests.append(call)
            if refused := self._refusal(call.body):
                return refused, {}
            fault, sayings = self._next_fault(call.role), self._sayings[call.role]
            if sayings and (fault is None or call.role == "chat"):
                return fault, sayings.popleft()
        if call.role == "chat":
            return fault, {"pieces": spoken(call.body["messages"])}
        return fault, self.answer(call.body["messages"])

    def answer(self, messages: list[dict[str, str]]) -> dict[str, Any]:
        """What the model says; a world of its own overrides this."""
        return answer(messages)

    def _next_fault(self, role: str) -> Fault | None:
        faults = self._faults[role]
        while faults and faults[0][0] == 0:
            faults.popleft()
        if not faults:
            return None
        faults[0][0] -= 1
        fault: Fault = faults[0][1]
        return fault

    def wait(self, role: str) -> None:
        with self.slots or nullcontext():  # a local server: the others wait for their turn
            self.closing.wait(self.latency)
        if gate := self._gates.get(role):
            gate.pass_through()

    def _refusal(self, body: dict[str, Any]) -> Fault | None:
        kind = body.get("response_format", {}).get("type")
        if kind in self._refused:
            return Fault(status=400, message=f"response_format {kind} is not supported")
        for name in self._refused & body.keys():
            return Fault(
                status=400, code="unsupported_parameter", message=f"Unsupported parameter: {name}"
            )
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("--latency", type=float, default=0, help="seconds for each answer")
    parser.add_argument("--fail", action="append", default=[], help="role:status-or-kind:times")
    options = parser.parse_args()
    with FakeLLM(port=options.port, latency=options.latency, verbose=True) as llm:
        for role, what, times in (fault.split(":") for fault in options.fail):
            if what.isdigit():
                llm.fail(role, status=int(what), times=int(times))
            else:
                llm.fail(role, what, times=int(times))
        print(f"OPENAI_BASE_URL={llm.base_url} OPENAI_API_KEY=fake", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print(f"{llm.count()} calls, {llm.served_tokens} tokens served", flush=True)


if __name__ == "__main__":
    main()
