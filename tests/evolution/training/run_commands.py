"""Calling the training commands as a person does, and reading the summary that they print."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import call_command

from playbooks.models import Playbook


def train(trained: Playbook, world: dict[str, Path], **options: Any) -> dict[str, Any]:
    """The summary of `ace_offline_train` on this world."""
    out = StringIO()
    options = {
        "dataset": world["train"],
        "val_dataset": world["val"],
        "test_dataset": world["test"],
        "playbook": str(trained.pk),
        "stderr": StringIO(),
        "json": True,
    } | options
    call_command("ace_offline_train", stdout=out, **options)
    return summary_of(out)


def run_online(playbook: Playbook, dataset: Path, **options: Any) -> dict[str, Any]:
    """The summary of `ace_online_run` on this stream."""
    out = StringIO()
    options = (
        {"dataset": dataset, "playbook": playbook.name, "stderr": StringIO()}
        | {"json": True}
        | options
    )
    call_command("ace_online_run", stdout=out, **options)
    return summary_of(out)


def summary_of(out: StringIO) -> dict[str, Any]:
    """The last line; those before it are steps."""
    summary: dict[str, Any] = json.loads(out.getvalue().splitlines()[-1])
    return summary
