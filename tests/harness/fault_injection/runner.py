"""What each part of the harness does; imported once the environment says where the database is."""

import argparse
import importlib
import json
import logging
import time
from dataclasses import dataclass
from typing import Any

import django
from django.conf import settings

COUNTS = {("kills", "postgres"): 1000, ("kills", "sqlite"): 500, ("pauses", "postgres"): 100}


@dataclass(frozen=True)
class Options:
    """The command line."""

    part: str
    database: str
    count: int
    lanes: int
    seconds: float
    existing: str
    mutant: str
    share: str


def run(namespace: argparse.Namespace) -> int:
    """Run one part; 0 when everything held."""
    options = Options(**vars(namespace))
    if options.existing:
        settings.DATABASES["default"]["NAME"] = options.existing
    django.setup()
    logging.disable(logging.ERROR)
    if options.part in {"kills", "pauses"}:
        return _campaign(options)
    return int(
        importlib.import_module(f"tests.harness.fault_injection.{options.part}").run(options)
    )


def _campaign(options: Options) -> int:
    # Warm: the first call of a model imports its SDK, which every child would pay for.
    importlib.import_module("evolution.engine.providers.openai")
    if options.mutant:
        importlib.import_module("tests.harness.fault_injection.mutants").seed(options.mutant)
    campaign = importlib.import_module("tests.harness.fault_injection.campaign")
    count = options.count or COUNTS.get((options.part, options.database), 100)
    lanes = options.lanes or (40 if options.part == "pauses" else 16)
    kinds = {options.part: count, "share": options.share}
    plan = campaign.Plan(lanes=lanes, seconds=options.seconds, **kinds)
    verdict = campaign.run(plan)
    return report(options, verdict.figures, verdict.wrong)


def report(options: Options, figures: dict[str, Any], wrong: list[str]) -> int:
    """Print the figures as one JSON object; the exit code says whether anything was wrong."""
    head = {
        "part": options.part,
        "database": options.database,
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
    }
    print(json.dumps(head | figures | {"wrong": wrong}, indent=1))
    return 1 if wrong else 0
