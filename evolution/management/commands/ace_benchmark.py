"""`manage.py ace_benchmark`: the paper's table for any OpenAI-compatible endpoint."""

from argparse import ArgumentParser
from importlib import import_module
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = (
        "Compare ACE with other methods on your model. Base model, in-context learning, GEPA and "
        "Dynamic Cheatsheet, on the published finance data or a file of yours."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        # In the checkout, not in the image: only who compares methods needs it.
        try:
            self.benchmark: Any = import_module("benchmarks.quality.command")
        except ModuleNotFoundError as error:
            parser.error(f"run it in a checkout of the repository: {error}")
        self.benchmark.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        self.benchmark.run_command(options, out=self.stdout, screen=self.stderr)
