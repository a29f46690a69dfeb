"""`manage.py ace_online_run`: predict a stream of samples, and learn from it window by window."""

import math
from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from evolution.engine.adaptation.adapters import AdapterOptions, OnlineAdapter
from evolution.engine.adaptation.datasets import read_samples
from evolution.training.command import TrainingCommand, needs_targets, positive


class Command(TrainingCommand):
    kind = "online"
    repeated = (*TrainingCommand.repeated, "window")
    help = (
        "Answer a stream of samples and learn after each window. The samples are the lines of a "
        "JSON Lines file, in their order. Use --resume to continue a run that was stopped or "
        "killed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--window", type=positive, default=5, help="samples answered before learning (5)"
        )

    def prepare(self, options: dict[str, Any]) -> None:
        self.stream = read_samples(
            options["dataset"], name="live", need_target=needs_targets(options)
        )
        self.judges = self.environments(options, self.stream)

    def plan(self) -> dict[str, Any]:
        windows = math.ceil(len(self.stream) / self.given["window"])
        answers = len(self.stream) * self.given["rounds"]
        return {
            "samples": len(self.stream),
            "windows": windows,
            "most_calls": {"generate": answers, "reflect": answers, "curate": windows},
        }

    def adapter(self, **parts: Any) -> OnlineAdapter:
        options = AdapterOptions(
            batch_size=self.given["window"],
            rounds=self.given["rounds"],
            concurrency=settings.LLM_CONCURRENCY,
        )
        return OnlineAdapter(stream=self.stream, options=options, **self.judges, **parts)
