"""The training commands as a person meets them: options, refusals, stops, and what they leave."""

import json
import logging
import re
import sys
from decimal import Decimal
from io import StringIO
from pathlib import Path

import pytest
from django.conf import LazySettings, settings
from django.core.management import CommandError, call_command
from django.db.models import Sum

from accounts.models import User
from billing.models import UsageRecord
from core.models import RateCounter
from evolution.evidence.ledger import playbook_metrics
from evolution.models import EvolutionJob, Outcome, TrainingRun
from evolution.training import runs
from evolution.training.runs import RunTakenOver
from evolution.worker.sweep import sweep
from playbooks.models import Playbook
from tests.evolution.training.run_commands import run_online, train
from tests.factories import make_outcome, make_playbook
from tests.harness.fake_llm.learning import LearningLLM, write_world

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_dry_run_prints_the_plan_and_asks_and_writes_nothing(
    blank: Playbook, world: dict[str, Path], llm: LearningLLM
) -> None:
    plan = train(blank, world, dry_run=True, epochs=2)
    assert plan["samples"] == {"train": 10, "validation": 10, "test": 10}
    assert plan["batches"] == 4
    assert llm.count() == TrainingRun.objects.count() == 0


def test_without_validation_samples_a_share_of_the_data_set_is_held_back(
    blank: Playbook, world: dict[str, Path], llm: LearningLLM
) -> None:
    plan = train(blank, world, dry_run=True, val_dataset=None, val_split=0.3)
    assert plan["samples"] == {"train": 7, "validation": 3, "test": 10}


def test_a_function_of_ones_own_judges(
    blank: Playbook, world: dict[str, Path], llm: LearningLLM
) -> None:
    right = "call:tests.evolution.training.test_environments:slowly_right"
    assert train(blank, world, environment=right)["test"]["after"] == 0.2
    assert set(Outcome.objects.values_list("signal", flat=True)) == {"test"}


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_live_bar_and_the_table_at_the_end(
    blank: Playbook,
    lesser_world: dict[str, Path],
    llm: LearningLLM,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen, out, logged = Terminal(), StringIO(), settings.DATA_DIR / "training.log"
    handler = logging.StreamHandler(sys.stderr)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    call_command(
        "ace_offline_train",
        *(f"--playbook={blank.pk}", f"--dataset={lesser_world['train']}"),
        f"--val-dataset={lesser_world['val']}",
        stdout=out,
        stderr=screen,
    )
    assert "100%" in screen.getvalue() and "\x1b[" in screen.getvalue()
    assert re.search(r"batches +scored on +accuracy", screen.getvalue())
    assert re.search(r"validation  50.0% → 100.0% of 2 samples", out.getvalue())
    assert "llm call" not in capsys.readouterr().err
    assert logged.read_text().count("llm call") >= llm.count()
    assert handler.stream is sys.stderr


def test_without_a_terminal_there_are_plain_lines(
    blank: Playbook, lesser_world: dict[str, Path], llm: LearningLLM
) -> None:
    screen, out = StringIO(), StringIO()
    dataset = f"--dataset={lesser_world['val']}"
    call_command("ace_online_run", dataset, f"--playbook={blank.pk}", stdout=out, stderr=screen)
    assert "\x1b" not in screen.getvalue()
    assert [line.split()[:2] for line in screen.getvalue().splitlines()] == [
        ["batches", "scored"],
        ["0", "window"],
    ]
    assert "accuracy" in out.getvalue()


def test_json_is_a_line_for_each_step_and_the_summary(
    blank: Playbook, lesser_world: dict[str, Path], llm: LearningLLM
) -> None:
    screen, out = StringIO(), StringIO()
    options = ("--json", f"--playbook={blank.pk}", f"--dataset={lesser_world['train']}")
    val = f"--val-dataset={lesser_world['val']}"
    call_command("ace_offline_train", *options, val, stdout=out, stderr=screen)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    events = [line.pop("event") for line in lines]
    assert events == ["scored", "learnt", "learnt", "scored", "summary"]
    assert lines[1]["answers"] < lines[2]["answers"] <= lines[2]["of"]
    assert lines[0]["usage"]["calls"] < lines[3]["usage"]["calls"] == llm.count()
    assert lines[3]["accuracy"] == lines[4]["validation"]["after"]
    assert screen.getvalue() == ""


def test_a_run_that_was_taken_over_before_its_end_says_so_in_a_sentence(
    blank: Playbook, tiny_world: dict[str, Path], llm: LearningLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken_over(**_: object) -> None:
        raise RunTakenOver

    monkeypatch.setattr(runs, "complete_training", taken_over)
    with pytest.raises(CommandError, match="Another process has resumed"):
        run_online(blank, tiny_world["train"])


def test_training_counts_neither_towards_rate_limits_nor_as_what_agents_reported(
    blank: Playbook, tiny_world: dict[str, Path], llm: LearningLLM, alice: User
) -> None:
    counted = list(RateCounter.objects.values_list("key", "value"))  # the playbook was created
    train(blank, tiny_world, rounds=2)
    assert list(RateCounter.objects.values_list("key", "value")) == counted
    make_outcome(blank, alice)
    outcomes = playbook_metrics(playbook=blank)["outcomes"]
    assert (outcomes["total"], outcomes["pending"], outcomes["success_rate"]) == (1, 1, 1.0)
    sweep()
    assert EvolutionJob.objects.active().count() == 0


def test_a_limit_on_cost_is_never_passed_and_a_higher_one_resumes(
    blank: Playbook, world: dict[str, Path], llm: LearningLLM
) -> None:
    with pytest.raises(CommandError, match="--resume") as stopped:
        train(blank, world, max_cost_usd=Decimal("0.012"))
    spent = UsageRecord.objects.aggregate(cost=Sum("cost_usd"))["cost"]
    assert stopped.value.returncode == 3
    assert Decimal("0.004") < spent <= Decimal("0.012")
    assert EvolutionJob.objects.active().count() == 0
    assert Outcome.objects.pending().count() == 0
    summary = train(blank, world, max_cost_usd=Decimal("1"), resume=True)
    assert summary["test"]["after"] == 1.0
    assert UsageRecord.objects.filter(operation="generate").count() == llm.count("generator")


def test_a_limit_cannot_be_held_for_a_model_without_a_price(
    blank: Playbook, world: dict[str, Path], llm: LearningLLM, settings: LazySettings
) -> None:
    settings.ACE_GENERATOR_MODEL = "home-made"
    with pytest.raises(
        CommandError, match="No price is known for home-made.*price override in the admin"
    ):
        train(blank, world, max_cost_usd=Decimal("1"))


def test_a_refused_key_stops_the_run_and_a_good_one_resumes_it(
    blank: Playbook, world: dict[str, Path], llm: LearningLLM
) -> None:
    llm.fail("curator", status=401)
    with pytest.raises(CommandError, match="rejected the API key"):
        train(blank, world)
    assert TrainingRun.objects.get().status == "stopped"
    assert Outcome.objects.pending().count() == 0
    reflected = llm.count("reflector")
    assert train(blank, world, resume=True)["test"]["after"] == 1.0
    assert llm.count("reflector") == reflected + 5 == 10


def test_a_batch_without_a_usable_curation_is_left_out_and_the_run_goes_on(
    blank: Playbook, lesser_world: dict[str, Path], llm: LearningLLM
) -> None:
    llm.fail("curator", "malformed", times=3)
    summary = train(blank, lesser_world)
    assert summary["failed_batches"] == ["malformed"]
    assert Outcome.objects.exclude(set_aside_reason="").count() == 5
    assert Outcome.objects.pending().count() == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"playbook": "Nowhere"}, "No playbook with this id or name: 'Nowhere'"),
        ({"environment": "oracle"}, "There is no environment 'oracle'"),
        ({"resume": True}, "no unfinished training"),
        ({"dataset": Path("/no/such.jsonl")}, "cannot be read"),
    ],
)
def test_a_refusal_is_one_sentence(
    blank: Playbook,
    world: dict[str, Path],
    llm: LearningLLM,
    options: dict[str, object],
    sentence: str,
) -> None:
    with pytest.raises(CommandError, match=sentence):
        train(blank, world, **options)
    assert TrainingRun.objects.count() == 0


def test_without_a_model_training_is_refused(blank: Playbook, world: dict[str, Path]) -> None:
    with pytest.raises(CommandError, match="Training needs a model"):
        train(blank, world)


def test_a_run_is_only_resumed_with_the_same_options(
    blank: Playbook, lesser_world: dict[str, Path], llm: LearningLLM
) -> None:
    llm.fail("generator", status=401)
    with pytest.raises(CommandError):
        train(blank, lesser_world)
    with pytest.raises(CommandError, match="a different seed"):
        train(blank, lesser_world, resume=True, seed=7)


def test_a_new_run_abandons_the_unfinished_one(
    blank: Playbook, tiny_world: dict[str, Path], llm: LearningLLM
) -> None:
    llm.fail("generator", status=401)
    with pytest.raises(CommandError):
        train(blank, tiny_world)
    train(blank, tiny_world)
    assert set(TrainingRun.objects.values_list("status", flat=True)) == {"abandoned", "completed"}


def test_other_peoples_outcomes_wait_and_are_not_touched(
    blank: Playbook, tiny_world: dict[str, Path], llm: LearningLLM, alice: User
) -> None:
    waiting = make_outcome(blank, alice)
    train(blank, tiny_world)
    waiting.refresh_from_db()
    assert (waiting.job_id, waiting.processed_at) == (None, None)


def test_a_name_that_two_playbooks_have_needs_the_id(
    blank: Playbook, world: dict[str, Path], llm: LearningLLM, charlie: User
) -> None:
    make_playbook(charlie, name=blank.name)
    with pytest.raises(CommandError, match="Give the id"):
        train(blank, world, playbook=blank.name)


def test_an_online_run_predicts_better_and_better(
    blank: Playbook, llm: LearningLLM, tmp_path: Path
) -> None:
    summary = run_online(blank, write_world(tmp_path / "live.jsonl", seed=4, each=3), window=10)
    assert summary["last"] == 1.0 > summary["first"] > 0.2
    assert summary["usage"]["tokens"] == llm.served_tokens
    assert summary["windows"] == EvolutionJob.objects.filter(status="completed").count() == 3
    assert set(EvolutionJob.objects.values_list("trigger", flat=True)) == {"training"}


def test_an_online_run_prints_its_plan(blank: Playbook, tmp_path: Path) -> None:
    out = StringIO()
    dataset = write_world(tmp_path / "live.jsonl", seed=4, each=1)
    call_command("ace_online_run", dataset=dataset, playbook=blank.name, dry_run=True, stdout=out)
    assert json.loads(out.getvalue())["windows"] == 2
