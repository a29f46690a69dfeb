"""Usage as the page and the CSV show it: with names instead of ids, shares, and charts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from accounts.charts import BarChart, draw_bars
from accounts.models import User
from billing.breakdowns import NO_KEY, Cell, Total, buckets, total_by

SHOWN = 50
OPERATIONS = {
    "reflect": "reflecting on outcomes",
    "curate": "writing advice",
    "generate": "answering tasks",
    "judge": "judging texts",
    "embed": "comparing texts",
}
HEADS = (
    *("start", "playbook_id", "playbook", "model", "operation", "key_id", "key"),
    *("calls", "failed_calls"),
    *("prompt_tokens", "completion_tokens", "cached_tokens", "total_tokens"),
    *("cost_usd", "known_cost_usd", "calls_of_unknown_cost"),
)


@dataclass(frozen=True)
class Share:
    """One line of a breakdown; `value` in the URL narrows the page to it."""

    label: str
    value: str
    total: Total
    percent: float


@dataclass(frozen=True)
class Breakdown:
    """The calls cut by `name`, the most tokens first; `left_out` counts lines not shown."""

    name: str
    title: str
    shares: list[Share]
    left_out: int


@dataclass(frozen=True)
class Names:
    """What the ids of cells are called; rows that are gone have left only their ids."""

    playbooks: dict[UUID, str]
    keys: dict[UUID, str]

    @classmethod
    def of(cls, user: User, cells: list[Cell]) -> "Names":
        playbooks = {cell.playbook_id for cell in cells if cell.playbook_id}
        keys = {cell.api_key_id for cell in cells if cell.api_key_id}
        return cls(
            dict(user.playbooks.filter(pk__in=playbooks).values_list("pk", "name")),
            dict(user.api_keys.filter(pk__in=keys).values_list("pk", "name")),
        )

    def playbook(self, pk: UUID | None) -> str:
        return self.playbooks.get(pk, "a playbook that is gone") if pk else "no playbook"

    def key(self, pk: UUID | None) -> str:
        return self.keys.get(pk, "a key that is gone") if pk else "no key"


def charts_of(by_start: dict[date, Total], *, period: str, today: date) -> dict[str, BarChart]:
    """Tokens, and the part of the cost that is known."""
    tokens = {start: total.total_tokens for start, total in by_start.items()}
    cost = {start: total.known_cost_usd for start, total in by_start.items()}
    starts = buckets(period, today)
    return {"Tokens": draw_bars(tokens, starts), "Cost": draw_bars(cost, starts)}


def breakdowns_of(
    by_playbook: list[Cell], by_operation: list[Cell], by_key: list[Cell], names: Names
) -> list[Breakdown]:
    """The same calls by playbook, by model, by what they were for and by key."""
    operations = total_by(by_operation, lambda c: c.operation)
    playbooks = total_by(by_playbook, lambda c: c.playbook_id)
    models = total_by(by_playbook, lambda c: c.model)
    keys = total_by(by_key, lambda c: c.api_key_id or NO_KEY)
    return [
        _cut("playbook", "Playbook", playbooks, names.playbook),
        _cut("model", "Model", models, str),
        _cut("operation", "Operation", operations, operation_said),
        _cut("key", "Key", keys, names_key(names)),
    ]


def operation_said(operation: str | None) -> str:
    """What a call was for, in words."""
    return OPERATIONS.get(operation or "", operation or "")


def names_key(names: Names) -> Callable[[Any], str]:
    return lambda key: names.key(None if key == NO_KEY else UUID(str(key)))


def narrowed_to(chosen: dict[str, Any], names: Names) -> list[tuple[str, str]]:
    """The filters that are set: what each is about, and its value in words."""
    said: dict[str, Callable[[Any], str]] = {
        "playbook": names.playbook,
        "model": str,
        "operation": operation_said,
        "key": names_key(names),
    }
    return [(name, said[name](value)) for name, value in chosen.items()]


def table_of(cells: list[Cell], names: Names) -> Iterable[tuple[object, ...]]:
    """The rows of the CSV: each bucket by playbook, model, operation and key."""
    parts = total_by(cells, lambda c: (c.start, c.playbook_id, c.model, c.operation, c.api_key_id))
    for (start, playbook, model, operation, key), total in parts.items():
        known = "" if total.unpriced_calls == total.calls else total.known_cost_usd
        cost = "unknown" if total.cost_usd is None else total.cost_usd
        yield (
            *(start, playbook, names.playbook(playbook), model, operation),
            *(key, names.key(key)),
            *(total.calls, total.failed_calls, total.prompt_tokens, total.completion_tokens),
            *(total.cached_tokens, total.total_tokens, cost, known, total.unpriced_calls),
        )


def _cut(name: str, title: str, totals: dict[Any, Total], label: Callable[[Any], str]) -> Breakdown:
    whole = sum(total.total_tokens for total in totals.values()) or 1
    ordered = sorted(totals.items(), key=lambda one: -one[1].total_tokens)
    shares = [
        Share(label(key), str(key or ""), total, round(100 * total.total_tokens / whole, 1))
        for key, total in ordered[:SHOWN]
    ]
    return Breakdown(name, title, shares, len(ordered) - len(shares))
