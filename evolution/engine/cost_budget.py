"""A hard stop on cost: the most that a call can cost is reserved before it, its cost paid after."""

import json
import math
import threading
from collections.abc import Callable
from decimal import Decimal

from evolution.engine.llm import ChatRequest, LLMError, LLMRequest

Price = Callable[[str, int, int], Decimal | None]
"""US dollars for (model, prompt tokens, completion tokens); None when the price is unknown."""
CHARS_PER_TOKEN = 2.5
"""Fewer than the four that are usual: the reserved sum must not be too small. A character that
is not ASCII counts as a whole token, as in Chinese or Japanese."""


class CostLimitReached(LLMError):
    """The next call could go over the limit, so it was not made."""

    def __init__(self, limit: Decimal) -> None:
        super().__init__("cost_limit", f"The next call could exceed the limit of ${limit}.")


def max_tokens_of(text: str) -> int:
    """The most tokens that a text can have, by its characters."""
    plain = sum(character.isascii() for character in text)
    return math.ceil(plain / CHARS_PER_TOKEN) + len(text) - plain


class Budget:
    """US dollars that may be spent; `spent` holds what is paid already. Threads may share one."""

    def __init__(self, *, limit: Decimal, price: Price, spent: Decimal = Decimal(0)) -> None:
        self.limit, self.spent = limit, spent
        self._price = price
        self._reserved = Decimal(0)
        self._is_reached = False
        self._lock = threading.Lock()

    def reserve_cost(self, request: ChatRequest) -> Decimal:
        """Reserve the most that this call can cost; raises CostLimitReached if that is not left."""
        most = self.most(request)
        with self._lock:
            if self.spent + self._reserved + most > self.limit:
                self._is_reached = True
                raise CostLimitReached(self.limit)
            self._reserved += most
        return most

    def release(self, reserved: Decimal, cost: Decimal | None = None) -> None:
        """End a reservation; `cost` is what the call has cost."""
        with self._lock:
            self._reserved -= reserved
            self.spent += cost or 0

    def raise_if_reached(self) -> None:
        """Raise CostLimitReached when any call was refused, even a dispensable one."""
        if self._is_reached:
            raise CostLimitReached(self.limit)

    def most(self, request: ChatRequest) -> Decimal:
        """The price of the prompt with its schema, and of the longest answer."""
        sent = [message["content"] for message in request.messages]
        if isinstance(request, LLMRequest):
            sent.append(json.dumps(request.json_schema()))
        price = self._price(request.model, max_tokens_of("".join(sent)), request.max_tokens)
        return Decimal(0) if price is None else price
