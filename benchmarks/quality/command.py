"""The options of `manage.py ace_benchmark`, and the run around the table."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from benchmarks.quality import memory_playbook, report, runner, tasks
from billing.pricing.usage_pricing import price_in_usd
from core.errors import AceError
from evolution.engine.adaptation.datasets import DatasetError
from evolution.engine.adaptation.protocols import CheckpointMismatch
from evolution.engine.llm import LLMError
from evolution.training.command import (
    COST_STOPPED,
    STOPPED,
    dollars,
    positive,
    refuse_unpriced,
    role_models,
)


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--task", required=True, help="finer, formula, or a JSON Lines file")
    add("--data", type=Path, default=Path("data"), help="folder of the published files")
    methods = tuple(runner.METHODS)
    add("--methods", type=choice(methods), default=methods, help=",".join(methods))
    add("--mode", type=choice(("offline", "online")), default=("offline", "online"))
    add("--labels", type=choice(("with", "without")), default=("with",))
    add("--seeds", type=seeds, default=(0,), help="for example 0,1,2")
    add("--epochs", type=positive, default=1, help="over the training rows, for ACE (1)")
    add("--gepa-calls", type=positive, default=150, help="answers that GEPA may score (150)")
    add("--limit", type=positive, help="rows of each split, at most")
    add("--framing", choices=("published", "whole"), default="published")
    add("--concurrency", type=positive, default=8)
    add("--out", type=Path, required=True, help="folder of answers and results")
    add("--max-cost-usd", type=dollars, help="stop before a call that could exceed this")
    add("--dry-run", action="store_true", help="print the cost estimate; call no model")
    add("--resume", action="store_true", help="continue in a folder that has answers")


def run_command(options: dict[str, Any], *, out: Any, screen: Any) -> None:
    """Print the estimate, then the table after every cell; raises CommandError."""
    try:
        task = tasks.find_task(
            options["task"],
            data=options["data"],
            framing=options["framing"],
            limit=options["limit"],
        )
        plan = runner.Plan(
            task=task,
            methods=options["methods"],
            modes=options["mode"],
            labels=options["labels"],
            seeds=options["seeds"],
            models=role_models(),
            epochs=options["epochs"],
            gepa_calls=options["gepa_calls"],
            concurrency=options["concurrency"],
            options=settings.ACE_MODEL_OPTIONS,
        )
        screen.write(json.dumps(runner.estimate(plan, price_in_usd)))
        if not options["dry_run"]:
            out.write(_table(plan, options))
    except (AceError, DatasetError, CheckpointMismatch, FileNotFoundError) as error:
        raise CommandError(str(error)) from None


def _table(plan: runner.Plan, options: dict[str, Any]) -> str:
    """The table; whatever stops it, --resume goes on."""
    folder: Path = options["out"]
    _refuse(folder, options)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        results = runner.run(
            plan,
            folder=folder,
            connect=lambda ledger: memory_playbook.connect(
                settings.OPENAI_BASE_URL or "https://api.openai.com/v1",
                settings.OPENAI_API_KEY,
                ledger,
                deadline=settings.LLM_DEADLINE_SECONDS,
                options=settings.ACE_MODEL_OPTIONS,
            ),
            price=price_in_usd,
            limit=options["max_cost_usd"],
            tell=lambda line: print(line, file=sys.stderr, flush=True),
        )
    except LLMError as error:
        code = COST_STOPPED if error.code == "cost_limit" else STOPPED
        message = f"{error.message} Answers are kept: give the same command with --resume."
        raise CommandError(message, returncode=code) from None
    return report.write(folder, plan, results)


def _refuse(folder: Path, options: dict[str, Any]) -> None:
    if settings.ACE_ENGINE != "openai":
        raise CommandError("A benchmark needs a model: set OPENAI_API_KEY, ACE_ENGINE=openai.")
    if options["max_cost_usd"] is not None:
        refuse_unpriced()
    if not options["resume"] and (folder / "calls.jsonl").exists():
        raise CommandError(f"{folder} has answers: add --resume, or name a new folder.")


def choice(allowed: tuple[str, ...]) -> Any:
    """A parser of comma lists of these words."""

    def parse(text: str) -> tuple[str, ...]:
        found = tuple(text.split(","))
        if not set(found) <= set(allowed):
            raise ValueError(text)
        return found

    parse.__name__ = "list"  # argparse names it in its error
    return parse


def seeds(text: str) -> tuple[int, ...]:
    """`0,1,2`."""
    return tuple(int(part) for part in text.split(","))
