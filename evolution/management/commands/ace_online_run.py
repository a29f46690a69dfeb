"""`manage.py ace_online_run`: predict a stream of samples, and learn from it window by window."""

import math
from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from evolution.engine.adaptation.datasets import read_samples
from evolution.engine.adaptation.online import OnlineAdapter, OnlineOptions, OnlineResult
from evolution.engine.adaptation.protocols import Observer
from evolution.engine.retry import Wait
from evolution.training.command import (
    TrainingCommand,
    fingerprint,
    needs_targets,
    positive,
)
from evolution.training.setup import AdapterSetup


class Command(TrainingCommand):
    kind = "online"
    help = (
        "Answer a stream of samples and learn after each window. The samples are the lines of a "
        "JSON Lines file, in their order. The summary goes to stdout as JSON. A run that "
        "was stopped or killed goes on with --resume."
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
        self.judge = self.environment(options, self.stream)
        self.given = options

    def config(self) -> dict[str, Any]:
        shared = ("environment", "withhold_ground_truth", "rounds", "window")
        given = {name: self.given[name] for name in shared}
        return given | {"dataset": fingerprint(self.given["dataset"])}

    def plan(self) -> dict[str, Any]:
        windows = math.ceil(len(self.stream) / self.given["window"])
        answers = len(self.stream) * self.given["rounds"]
        return {
            "dry_run": True,
            "playbook_id": str(self.playbook.pk),
            "samples": len(self.stream),
            "windows": windows,
            "most_calls": {"generate": answers, "reflect": answers, "curate": windows},
        }

    def adapt(self, stage: AdapterSetup, observe: Observer, wait: Wait) -> OnlineResult:
        return OnlineAdapter(
            solver=stage.solver,
            learner=stage.learner,
            environment=self.judge,
            checkpoints=stage.checkpoints,
            stream=self.stream,
            options=OnlineOptions(
                window=self.given["window"],
                rounds=self.given["rounds"],
                concurrency=settings.LLM_CONCURRENCY,
            ),
            observe=observe,
            wait=wait,
        ).run()
