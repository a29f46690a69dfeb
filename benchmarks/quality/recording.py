"""One metered model for all methods: each answer is stored when it arrives, and never paid twice.

A run that is resumed asks the same questions; the stored ones answer in place of a call, so an
interrupted run ends with the same bytes as an unbroken one.
"""

import hashlib
import json
import os
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from evolution.engine.cost_budget import Budget, Price
from evolution.engine.llm import LLM, ChatRequest, LLMReply, LLMRequest, Usage

_BOUNDARY = re.compile(r"DATA [0-9a-f]{16}")
"""What a prompt draws at random for each block of data; the question is the same without it."""


@dataclass
class Spending:
    """Calls, tokens and US dollars of one phase; `unpriced` are calls whose price is unknown."""

    calls: int = 0
    tokens: int = 0
    dollars: Decimal = Decimal(0)
    unpriced: int = 0

    def add(self, record: dict[str, Any]) -> None:
        self.calls += 1
        self.tokens += record["usage"]["total_tokens"]
        if record["cost"] is None:
            self.unpriced += 1
        else:
            self.dollars += Decimal(record["cost"])

    def as_dict(self) -> dict[str, object]:
        return asdict(self) | {"dollars": str(self.dollars)}


class CallStore:
    """The answers of a run as lines of JSON, each on disk before it counts."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self._kept: dict[str, dict[str, Any]] = {}
        for line in path.read_text(encoding="utf-8").split("\n") if path.exists() else []:
            try:
                record = json.loads(line)
            except ValueError:  # a kill tore it: it is asked again
                continue
            self._kept[record["key"]] = record

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def dollars(self) -> Decimal:
        return sum((Decimal(one["cost"] or 0) for one in self._kept.values()), Decimal(0))

    def get(self, key: str) -> dict[str, Any] | None:
        return self._kept.get(key)

    def keep(self, record: dict[str, Any]) -> None:
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            # The new line comes first: after a torn one the next still stands alone.
            file.write("\n" + json.dumps(record, ensure_ascii=False, sort_keys=True))
            file.flush()
            os.fsync(file.fileno())
            self._kept[record["key"]] = record


class BudgetLedger:
    """Reserves the most that a call can cost before it, and pays after it."""

    def __init__(self, budget: Budget | None, price: Price) -> None:
        self._budget, self._price = budget, price

    def begin(self, request: ChatRequest) -> Decimal | None:
        return self._budget.reserve_cost(request) if self._budget else None

    def finish(self, entry: Decimal | None, reply: LLMReply, error: str = "") -> None:
        if self._budget is not None and entry is not None:
            self._budget.release(entry, cost_of(self._price, reply.model, reply.usage))


class RecordedLLM:
    """An LLM of one cell of the table: methods of other cells never share an answer with it."""

    def __init__(self, inner: LLM, store: CallStore, cell: str, price: Price) -> None:
        self._inner, self._store, self._cell, self._price = inner, store, cell, price
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.phase = "fit"
        self.spending = {"fit": Spending(), "score": Spending()}

    def complete(self, request: LLMRequest[Any]) -> LLMReply:
        """The stored answer to this question, or a new one; raises an LLMError."""
        key = self._key(request)
        record = self._store.get(key)
        if record is None:
            record = _record(key, request, self._inner.complete(request), self._price)
            self._store.keep(record)
        with self._lock:
            self._seen[key.rpartition("#")[0]] += 1
            self.spending[self.phase].add(record)
        return LLMReply(
            record["text"],
            Usage(**record["usage"]),
            record["model"],
            record["request_id"],
            record["finish_reason"],
        )

    def _key(self, request: LLMRequest[Any]) -> str:
        """Cell, step and a hash of model and prompt; a question asked again has the next number."""
        asked = json.dumps([request.model, request.messages, request.max_tokens])
        asked = _BOUNDARY.sub("DATA", asked)
        digest = hashlib.sha256(asked.encode()).hexdigest()[:24]
        base = f"{self._cell} {request.step} {digest}"
        with self._lock:
            return f"{base}#{self._seen[base]}"


def _record(key: str, request: LLMRequest[Any], reply: LLMReply, price: Price) -> dict[str, Any]:
    cost = cost_of(price, reply.model, reply.usage)
    return {
        "key": key,
        "text": reply.text,
        "usage": asdict(reply.usage),
        "model": reply.model,
        "request_id": reply.request_id,
        "finish_reason": reply.finish_reason,
        "cost": None if cost is None else str(cost),
    }


def cost_of(price: Price, model: str, usage: Usage) -> Decimal | None:
    return price(model, usage.prompt_tokens, usage.completion_tokens)


Connect = Callable[[BudgetLedger], LLM]
