"""`manage.py ace_offline_train`: train a playbook on samples with known answers."""

import math
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings

from evolution.engine.adaptation.datasets import read_samples, split_samples
from evolution.engine.adaptation.offline import OfflineAdapter, OfflineOptions, OfflineResult
from evolution.engine.adaptation.protocols import Observer
from evolution.engine.retry import Wait
from evolution.training.command import (
    TrainingCommand,
    fingerprint,
    needs_targets,
    positive,
    share,
)
from evolution.training.setup import AdapterSetup


class Command(TrainingCommand):
    kind = "offline"
    help = (
        "Train a playbook on a JSON Lines data set. Each batch is an evolution and a version; the "
        "best version by validation stays current. The summary goes to stdout as JSON. A run that "
        "was stopped or killed goes on with --resume."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        add = parser.add_argument
        add("--epochs", type=positive, default=1, help="passes over the training samples (1)")
        add("--batch-size", type=positive, default=5, help="samples of one evolution (5)")
        add("--evaluate-every", type=positive, default=5, help="batches between scorings (5)")
        add("--val-dataset", type=Path, help="validate on these")
        add("--val-split", type=share, default=0.2, help="else on this share of the samples (0.2)")
        add("--test-dataset", type=Path, help="scored before and after, never trained on")
        add("--seed", type=int, default=0, help="of the split and the order (0)")

    def prepare(self, options: dict[str, Any]) -> None:
        need = needs_targets(options)
        samples = read_samples(options["dataset"], name="train", need_target=need)
        if options["val_dataset"]:
            self.train = samples
            self.validation = read_samples(options["val_dataset"], name="val", need_target=need)
        else:
            self.train, self.validation = split_samples(
                samples, share=options["val_split"], seed=options["seed"]
            )
        test = options["test_dataset"]
        self.test = read_samples(test, name="test", need_target=need) if test else []
        self.judge = self.environment(options, [*samples, *self.validation, *self.test])
        self.options = OfflineOptions(
            epochs=options["epochs"],
            batch_size=options["batch_size"],
            rounds=options["rounds"],
            evaluate_every=options["evaluate_every"],
            seed=options["seed"],
            concurrency=settings.LLM_CONCURRENCY,
        )
        self.given = options

    def config(self) -> dict[str, Any]:
        shared = ("environment", "withhold_ground_truth", "val_split", "epochs", "batch_size")
        return {
            "dataset": fingerprint(self.given["dataset"]),
            "val_dataset": fingerprint(self.given["val_dataset"]),
            "test_dataset": fingerprint(self.given["test_dataset"]),
        } | {name: self.given[name] for name in (*shared, "rounds", "evaluate_every", "seed")}

    def plan(self) -> dict[str, Any]:
        parts = math.ceil(len(self.train) / self.options.batch_size)
        scorings = 1 + self.options.epochs * math.ceil(parts / self.options.evaluate_every)
        trained = self.options.epochs * len(self.train)
        return {
            "dry_run": True,
            "playbook_id": str(self.playbook.pk),
            "samples": {
                "train": len(self.train),
                "validation": len(self.validation),
                "test": len(self.test),
            },
            "batches": self.options.epochs * parts,
            "most_calls": {
                "generate": trained * self.options.rounds
                + scorings * len(self.validation)
                + 2 * len(self.test),
                "reflect": trained * self.options.rounds,
                "curate": self.options.epochs * parts,
            },
        }

    def adapt(self, stage: AdapterSetup, observe: Observer, wait: Wait) -> OfflineResult:
        return OfflineAdapter(
            solver=stage.solver,
            learner=stage.learner,
            environment=self.judge,
            checkpoints=stage.checkpoints,
            train=self.train,
            validation=self.validation,
            test=self.test,
            options=self.options,
            observe=observe,
            wait=wait,
        ).run()
