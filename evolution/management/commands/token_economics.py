"""`manage.py token_economics [--write]`: what the loop costs, measured on real prompts."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from evolution.engine.token_economics.measurement import tokenizer
from evolution.engine.token_economics.report import MODELS, render_report
from evolution.engine.token_economics.samples import read_tasks

DATA = ("formula_sample", "finer_sample")
DOCUMENT = "docs/TOKEN_ECONOMICS.md"


class Command(BaseCommand):
    help = (
        "Measure what an evolution costs in tokens and dollars. Counts the prompts that the engine "
        "builds at playbooks of 1k, 5k and 15k tokens. No model is called and no row is read. "
        "Prints Markdown."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--write", action="store_true", help=f"into {DOCUMENT}")
        parser.add_argument(
            "--dataset",
            type=Path,
            action="append",
            help="JSON Lines with `context` and `target`; may be given again",
        )
        parser.add_argument("--model", action="append", help="to price; may be given again")

    def handle(self, *args: Any, write: bool, **options: Any) -> None:
        folder = settings.BASE_DIR / "tests" / "data"
        paths = options["dataset"] or [folder / f"{name}.jsonl" for name in DATA]
        try:
            sets = {path.stem: read_tasks(path) for path in paths}
        except (OSError, ValueError) as error:
            raise CommandError(f"A data set cannot be read: {error}") from None
        if not all(sets.values()):
            raise CommandError("A data set is empty.")
        text = render_report(sets, tokenizer(), options["model"] or MODELS)
        if write:
            (settings.BASE_DIR / DOCUMENT).write_text(text, encoding="utf-8")
            self.stdout.write(f"{DOCUMENT} written")
        else:
            self.stdout.write(text, ending="")
