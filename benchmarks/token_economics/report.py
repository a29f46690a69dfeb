"""Writes the measurement as a Markdown document: `report.md` filled with tables."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from string import Template

from benchmarks.token_economics.growth import (
    ADDS_PER_EVOLUTION,
    BATCH,
    PUBLISHED_INPUT,
    measure_growth,
)
from benchmarks.token_economics.measurement import (
    MIN_CACHED_TOKENS,
    Batch,
    Call,
    Count,
    estimate,
    measure_batch,
    measure_generator,
)
from benchmarks.token_economics.samples import sample_playbook
from billing.pricing.calculator import PRICE_LIST_SOURCE, price_call
from evolution.engine.prompts import load_prompt

Tasks = Sequence[tuple[str, str]]
SIZES = (1_000, 5_000, 15_000)
BATCHES = (1, 5, 10)
TYPICAL = 5_000
MODELS = (
    *("gpt-6.1-terra", "claude-sonnet-5-5", "claude-haiku-5-5", "gemini-3.8-flash"),
    *("mistral-large-4",),
)


def render_report(sets: Mapping[str, Tasks], count: Count | None, models: Sequence[str]) -> str:
    """The whole document; `count` is a tokenizer, or None where there is only the estimator."""
    first, used = next(iter(sets.values())), count or estimate
    template = Template((Path(__file__).parent / "report.md").read_text(encoding="utf-8"))
    return template.substitute(
        prompts=", ".join(f"{name} {load_prompt(name).version}" for name in ROLES),
        counted=BY_TOKENIZER if count else BY_ESTIMATE,
        batch=BATCH,
        cached_from=f"{MIN_CACHED_TOKENS:,}",
        roles=_roles(first, used),
        evolutions=_evolutions(sets, used),
        accuracy=_accuracy(sets, count),
        prices=PRICE_LIST_SOURCE,
        typical=f"{TYPICAL:,}",
        money=_money(first, used, models),
        **_growth(first, used),
        **_advice(first, used, models),
    )


ROLES = ("generator", "reflector", "curator")
BY_TOKENIZER = "Tokens are counted with the tokenizer\n`o200k_base` (package rs-bpe)."
BY_ESTIMATE = "Tokens are estimated at four\ncharacters each, because no tokenizer is installed."


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _roles(tasks: Tasks, count: Count) -> str:
    rows: list[list[object]] = []
    for size in SIZES:
        batch, asked = _measured(tasks, size, count)
        for call in (asked, batch.reflections[-1], batch.curation):
            rows.append([size, call.role, call.prompt, call.shared, call.received])
    return table(("playbook", "role", "input", "cacheable", "output"), rows)


def _measured(tasks: Tasks, size: int, count: Count) -> tuple[Batch, Call]:
    playbook = sample_playbook(size)
    batch = measure_batch(tasks, playbook, count, size=BATCH)
    return batch, measure_generator(tasks, playbook, count)


def _evolutions(sets: Mapping[str, Tasks], count: Count) -> str:
    rows: list[list[object]] = []
    for name, tasks in sets.items():
        for size in SIZES:
            made = {n: measure_batch(tasks, sample_playbook(size), count, size=n) for n in BATCHES}
            each = [batch.prompt // n for n, batch in made.items()]
            share = made[BATCH].prompt * 100 // (BATCH * made[1].prompt)
            rows.append([name, size, *each, f"{share} %", made[BATCH].received // BATCH])
    batches = [f"batch of {n}" for n in BATCHES]
    return table(("tasks", "playbook", *batches, "5 to five 1", "output"), rows)


def _accuracy(sets: Mapping[str, Tasks], count: Count | None) -> str:
    if count is None:
        return "No tokenizer\nis installed here (`pip install rs-bpe`), so its error is not known."
    errors: list[float] = []
    for tasks in sets.values():
        for size in SIZES:
            (true, _), (guess, _) = _measured(tasks, size, count), _measured(tasks, size, estimate)
            errors.append((guess.prompt - true.prompt) * 100 / true.prompt)
    least, most = f"{min(errors):+.1f} %", f"{max(errors):+.1f} %"
    return f"On the\ninput of these evolutions its error is between {least} and {most}."


def _cost(model: str, *, prompt: int, received: int, cached: int = 0) -> Decimal | None:
    return price_call(
        model=model,
        prompt_tokens=prompt,
        completion_tokens=received,
        cached_tokens=cached,
        at=datetime.now(UTC),
    ).cost


def _usd(cost: Decimal | None, times: int = 1) -> str:
    if cost is None:
        return "unknown"
    return f"{cost:.4f}" if times == 1 else f"{cost * times:.2f}"


def _money(tasks: Tasks, count: Count, models: Sequence[str]) -> str:
    batch, asked = _measured(tasks, TYPICAL, count)
    single = measure_batch(tasks, sample_playbook(TYPICAL), count, size=1)
    rows: list[list[object]] = []
    for model in models:
        full = _cost(model, prompt=batch.prompt, received=batch.received)
        cached = _cost(model, prompt=batch.prompt, received=batch.received, cached=batch.cached)
        alone = _cost(model, prompt=single.prompt, received=single.received)
        answer = _cost(model, prompt=asked.prompt, received=asked.received, cached=asked.cached)
        sums = [_usd(cached, 1_000 // BATCH), _usd(alone, 1_000)]
        rows.append([model, _usd(full), _usd(cached), *sums, _usd(answer)])
    head = ("evolution of 5", "with cache", "1,000 outcomes", "one by one", "Generator")
    return table(("model", *head), rows)


def _growth(tasks: Tasks, count: Count) -> dict[str, object]:
    points = {point.outcomes: point for point in measure_growth(tasks, count)}
    rows = [
        [
            *(p.outcomes, p.playbook, p.each, p.total),
            *(p.published_total, p.add_only_each, p.add_only_total),
        ]
        for p in (points[n] for n in (50, 100, 500, 1_000))
    ]
    ours, others = ("outcomes", "playbook", "each", "sum"), ("ADD-only, each", "ADD-only, sum")
    return {
        "adds": ADDS_PER_EVOLUTION,
        "published": f"{PUBLISHED_INPUT:,}",
        "growth": table((*ours, "public loop, sum", *others), rows),
        "ratio": f"{points[1_000].each / points[100].each:.2f}",
        "factor": f"{points[1_000].published_total / points[1_000].total:.0f}",
    }


def _advice(tasks: Tasks, count: Count, models: Sequence[str]) -> dict[str, object]:
    playbook = sample_playbook(TYPICAL)
    each = {n: measure_batch(tasks, playbook, count, size=n).prompt // n for n in BATCHES}
    batch = measure_batch(tasks, playbook, count, size=BATCH)
    costs = [_cost(model, prompt=batch.prompt, received=batch.received) for model in models]
    known = [cost for cost in costs if cost is not None]
    low, high = min(known, default=None), max(known, default=None)
    return {
        "saved": 100 - each[5] * 100 // each[1],
        "more": 100 - each[10] * 100 // each[5],
        "low": _usd(low),
        "high": _usd(high),
        "thrice": _usd(high, 3),
    }
