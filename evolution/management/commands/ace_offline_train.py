"""`manage.py ace_offline_train`: train a playbook on samples with known answers."""

import math
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings

from evolution.engine.adaptation.adapters import AdapterOptions, OfflineAdapter
from evolution.engine.adaptation.datasets import read_samples, split_samples
from evolution.training.command import TrainingCommand, needs_targets, positive, share


class Command(TrainingCommand):
    kind = "offline"
    datasets = ("dataset", "val_dataset", "test_dataset")
    repeated = (
        *TrainingCommand.repeated,
        *("val_split", "epochs", "batch_size", "evaluate_every", "seed"),
    )
    help = (
        "Train a playbook on a JSON Lines data set. Each batch is an evolution and a version; the "
        "best version by validation stays current. Use --resume to continue a run that was "
        "stopped or killed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        add = parser.add_argument
        add("--epochs", type=positive, default=1, help="passes over the training samples (1)")
        add("--batch-size", type=positive, default=5, help="samples per evolution (5)")
        add("--evaluate-every", type=positive, default=5, help="batches between evaluations (5)")
        add("--val-dataset", type=Path, help="validation samples")
        add(
            "--val-split",
            type=share,
            default=0.2,
            help="without --val-dataset: share of samples to validate on (0.2)",
        )
        add("--test-dataset", type=Path, help="scored before and after; never trained on")
        add("--seed", type=int, default=0, help="seed for the split and the order (0)")

    def prepare(self, options: dict[str, Any]) -> None:
        need = needs_targets(options)
        samples = read_samples(options["dataset"], name="train", need_target=need)
        if options["withhold_ground_truth"]:
            self.train, self.validation = samples, []  # labels must not choose the version either
        elif options["val_dataset"]:
            self.train = samples
            self.validation = read_samples(options["val_dataset"], name="val", need_target=need)
        else:
            self.train, self.validation = split_samples(
                samples, share=options["val_split"], seed=options["seed"]
            )
        test = options["test_dataset"]
        self.test = read_samples(test, name="test", need_target=need) if test else []
        self.judges = self.environments(options, [*samples, *self.validation, *self.test])
        self.options = AdapterOptions(
            epochs=options["epochs"],
            batch_size=options["batch_size"],
            rounds=options["rounds"],
            evaluate_every=options["evaluate_every"],
            seed=options["seed"],
            concurrency=settings.LLM_CONCURRENCY,
        )

    def plan(self) -> dict[str, Any]:
        parts = math.ceil(len(self.train) / self.options.batch_size)
        scorings = 1 + self.options.epochs * math.ceil(parts / self.options.evaluate_every)
        trained = self.options.epochs * len(self.train)
        return {
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

    def adapter(self, **parts: Any) -> OfflineAdapter:
        return OfflineAdapter(
            train=self.train,
            validation=self.validation,
            test=self.test,
            options=self.options,
            **self.judges,
            **parts,
        )
