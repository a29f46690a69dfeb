"""The table as JSON, Markdown and a chart, with the paper's figures beside ours."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.quality.runner import CellResult, Plan
from benchmarks.quality.statistics import Comparison, compare, half_width, mean
from benchmarks.svg import svg_document, svg_text
from core.charts import Frame

PAPER_MODEL = "DeepSeek-V3.1"
# (method, mode, labels): FiNER and Formula, accuracy in percent, table 2 of arXiv:2510.04618.
PAPER: dict[tuple[str, str, str], tuple[float, float]] = {
    ("base", "offline", "with"): (70.7, 67.5),
    ("icl", "offline", "with"): (72.3, 67.0),
    ("mipro", "offline", "with"): (72.4, 69.5),
    ("gepa", "offline", "with"): (73.5, 71.5),
    ("ace", "offline", "with"): (78.3, 85.5),
    ("ace", "offline", "without"): (71.1, 83.0),
    ("dc", "online", "with"): (74.2, 69.5),
    ("dc", "online", "without"): (68.3, 62.5),
    ("ace", "online", "with"): (76.7, 76.5),
    ("ace", "online", "without"): (67.3, 78.5),
}
NAMES = {
    "base": "Base model",
    "icl": "ICL",
    "mipro": "MIPROv2",
    "gepa": "GEPA",
    "dc": "Dynamic Cheatsheet",
    "ace": "ACE (this product)",
}
Key = tuple[str, str, str]
ROW, LEFT, WIDTH = 28, 330, 880


def summarize(plan: Plan, results: list[CellResult]) -> dict[str, Any]:
    """Means and ranges over seeds, and each method compared with the base on the same rows."""
    groups: dict[Key, list[CellResult]] = defaultdict(list)
    for result in results:
        cell = result.cell
        groups[(cell.method, cell.mode, cell.labels)].append(result)
    base_labels = "with" if "with" in plan.labels else plan.labels[0]
    base = _mean_by_sample(groups.get(("base", "offline", base_labels), []))
    rows = [_summary(key, found, base, plan) for key, found in groups.items()]
    return {"plan": plan.as_dict(), "rows": rows}


def _summary(
    key: Key, found: list[CellResult], base: dict[str, float], plan: Plan
) -> dict[str, Any]:
    method, mode, labels = key
    by_seed = [100 * mean([row["published"] for row in one.rows]) for one in found]
    ours = _mean_by_sample(found)
    rows = len(found[0].rows)
    summary: dict[str, Any] = {
        "method": method,
        "mode": mode,
        "labels": labels,
        "samples": rows,
        "seeds": len(found),
        "accuracy": mean(by_seed),
        "least": min(by_seed),
        "most": max(by_seed),
        "tolerant": 100 * mean([row["tolerant"] for one in found for row in one.rows]),
        "unanswered": sum(row["answer"] is None for one in found for row in one.rows),
        "half_width": half_width(mean(by_seed) / 100, rows),
        "adapting": _spent([one.adapting for one in found]),
        "scoring": _spent([one.scoring for one in found]),
        "sizes": [one.size for one in found if one.size],
    }
    if base and method != "base":
        names = sorted(base)
        scores = [ours[name] for name in names], [base[name] for name in names]
        summary["against_base"] = vars(compare(*scores, is_binary=not plan.task.is_by_item))
    return summary


def _mean_by_sample(found: list[CellResult]) -> dict[str, float]:
    scores: dict[str, list[float]] = defaultdict(list)
    for result in found:
        for row in result.rows:
            scores[row["sample"]].append(row["published"])
    return {sample: mean(values) for sample, values in scores.items()}


def _spent(parts: list[dict[str, Any]]) -> dict[str, Any]:
    dollars = sum(float(part["dollars"]) for part in parts)
    counts = {name: sum(part[name] for part in parts) for name in ("calls", "tokens", "unpriced")}
    return counts | {"dollars": round(dollars, 6)}


def write(folder: Path, plan: Plan, results: list[CellResult]) -> str:
    """Write results.json, per_sample.jsonl, table.md and chart.svg; returns the table."""
    summary = summarize(plan, results)
    table = markdown(summary)
    lines = [
        json.dumps({"cell": str(result.cell)} | row, ensure_ascii=False, sort_keys=True)
        for result in results
        for row in result.rows
    ]
    written = {
        "results.json": json.dumps(summary, indent=2, sort_keys=True) + "\n",
        "per_sample.jsonl": "\n".join(lines) + "\n",
        "table.md": table,
        "chart.svg": chart(summary),
    }
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    return table


def markdown(summary: dict[str, Any]) -> str:
    """The table as the paper's, and what it does not show."""
    plan, rows = summary["plan"], summary["rows"]
    model = plan["models"]["generator"]
    other = (
        "" if model.lower().startswith(PAPER_MODEL.lower()) else f" ({PAPER_MODEL}: other model)"
    )
    head = (
        f"| method | mode | labels | {plan['task']['name']}, % (range over seeds) | tolerant, % "
        f"| against base, points [95 %] | p | paper, %{other} | unanswered "
        "| adapting: calls, tokens, US$ | scoring: calls, tokens, US$ |"
    )
    lines = [head, "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    lines += [_table_row(row, plan["task"]["name"]) for row in rows]
    if "offline" in plan["modes"]:
        lines.append(
            f"| MIPROv2 | offline | with | not run |  |  |  | {_paper(MIPRO, plan)} | | | |"
        )
    count = rows[0]["samples"] if rows else 0
    width = rows[0]["half_width"] if rows else 0
    notes = (
        f"{count} rows: one accuracy is known to ± {width:.0f} points (95 %). Scores are the "
        "published metric; `tolerant` is the product's. Against base: mean difference on the same "
        "rows, bootstrap by row; p by McNemar's exact test. MIPROv2 needs DSPy's 66 packages."
    )
    return "\n".join([*lines, "", notes]) + "\n"


MIPRO: Key = ("mipro", "offline", "with")


def _table_row(row: dict[str, Any], task: str) -> str:
    key = (row["method"], row["mode"], row["labels"])
    against = row.get("against_base")
    shown = Comparison(**against) if against else None
    figures = [
        NAMES[row["method"]],
        row["mode"],
        row["labels"],
        f"{row['accuracy']:.1f} ({row['least']:.1f}–{row['most']:.1f})",
        f"{row['tolerant']:.1f}",
        f"{shown.difference:+.1f} [{shown.low:+.1f}, {shown.high:+.1f}]" if shown else "",
        _shown_p(shown.p) if shown and shown.p is not None else "",
        _paper(key, {"task": {"name": task}}),
        str(row["unanswered"]),
        _cost(row["adapting"]),
        _cost(row["scoring"]),
    ]
    return f"| {' | '.join(figures)} |"


def _shown_p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _paper(key: Key, plan: dict[str, Any]) -> str:
    column = {"finer": 0, "formula": 1}.get(plan["task"]["name"])
    return f"{PAPER[key][column]:.1f}" if column is not None and key in PAPER else ""


def _cost(spent: dict[str, Any]) -> str:
    dollars = "price not known" if spent["unpriced"] else f"{spent['dollars']:.4f}"
    return f"{spent['calls']:,}, {spent['tokens']:,}, {dollars}"


def chart(summary: dict[str, Any]) -> str:
    """A bar for each row, with its 95 % interval."""
    rows = summary["rows"]
    frame = Frame(WIDTH, 60 + ROW * len(rows), left=LEFT, right=70)
    parts = []
    for number, row in enumerate(rows):
        y = 40 + ROW * number
        x, end = frame.x(0), frame.x(row["accuracy"] / 100)
        low = frame.x(max(0.0, row["accuracy"] - row["half_width"]) / 100)
        high = frame.x(min(100.0, row["accuracy"] + row["half_width"]) / 100)
        name = f"{NAMES[row['method']]}, {row['mode']}, {row['labels']} labels"
        parts += [
            svg_text(LEFT - 8, y + 14, name, anchor="end"),
            f'<rect x="{x:.1f}" y="{y}" width="{end - x:.1f}" height="18" fill="#1d4ed8"/>',
            f'<line x1="{low:.1f}" y1="{y + 9}" x2="{high:.1f}" y2="{y + 9}" stroke="#f59e0b" '
            'stroke-width="3"/>',
            svg_text(high + 6, y + 14, f"{row['accuracy']:.1f} %"),
        ]
    style = "font: 13px system-ui, sans-serif; fill: #1e293b"
    return svg_document(
        frame, parts, title=f"Accuracy on {summary['plan']['task']['name']}", style=style
    )
