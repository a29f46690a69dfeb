"""Learning, measured without a model: what the server answers can only come from its prompt."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from billing.models import UsageRecord
from evolution.models import AdaptationRun
from playbooks.models import Playbook
from playbooks.services import verify_playbook
from tests.learning_world import LearningLLM

pytestmark = pytest.mark.django_db(transaction=True)


def train(playbook: Playbook, world: dict[str, Path], **options: Any) -> dict[str, Any]:
    out = StringIO()
    call_command(
        "ace_offline_train",
        dataset=world["train"],
        val_dataset=world["val"],
        test_dataset=world["test"],
        playbook=str(playbook.pk),
        stdout=out,
        stderr=StringIO(),
        **options,
    )
    summary: dict[str, Any] = json.loads(out.getvalue())
    return summary


def test_accuracy_on_tasks_it_has_not_seen_rises_from_the_baseline_to_95_percent(
    blank: Playbook, world: dict[str, Path], llm: LearningLLM
) -> None:
    summary = train(blank, world)
    assert summary["test"]["before"] == 0.2
    assert summary["test"]["after"] >= 0.95
    assert summary["usage"]["tokens"] == llm.served_tokens
    assert UsageRecord.objects.filter(operation="generate").count() == llm.count("generator")
    assert verify_playbook(blank) == []
    assert AdaptationRun.objects.get().status == "completed"
