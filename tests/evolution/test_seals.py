"""Seals name what was changed behind the platform's back."""

import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Value
from django.db.models.functions import Concat
from pytest_django import Settings

from accounts.models import User
from core.security.scopes import Principal
from evolution.models import Outcome
from evolution.outcomes.correction import correct_outcome
from evolution.worker.sweep import sweep
from playbooks.document.operations import Operation
from playbooks.models import Playbook, Trial, Version
from playbooks.services.reading import read_playbook
from playbooks.services.seals import chain, check_seals, export_seals
from tests.factories import make_outcome
from tests.harness.rest_client import Rest
from tests.harness.trials import LESSON, evolve, harm, on_trial, read
from tests.playbooks.test_edit import edit

pytestmark = pytest.mark.postgres
SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "check_seals.py"


@pytest.fixture
def learned(playbook: Playbook, alice: User) -> Playbook:
    """Version 2 was learned from an outcome, version 3 is an edit."""
    evolve(playbook, alice)
    edit(playbook, Operation("UPDATE", id="str-00001", content="Read it twice."))
    return Playbook.objects.select_related("current_version").get(pk=playbook.pk)


def verify(*arguments: str) -> str:
    out = StringIO()
    try:
        call_command("verify", *arguments, stdout=out, stderr=out)
    except CommandError as error:
        out.write(str(error))
    return out.getvalue()


def rebuild(playbook: Playbook) -> None:
    """Rewrite a fact of version 2, and every seal after it."""
    previous = ""
    for version in playbook.versions.order_by("number"):
        facts: dict[str, Any] = version.sealed or {}
        if version.number == 2:
            version.reason = facts["reason"] = "edit"
        previous = chain(previous, facts)
        playbook.versions.filter(pk=version.pk).update(
            sealed=facts, seal=previous, reason=version.reason
        )


def test_a_sound_history_agrees(learned: Playbook, alice: User) -> None:
    assert list(check_seals(learned)) == []
    assert "1 playbooks verified" in verify("--serving-id", read(learned, alice).serving_id)


MANIPULATIONS: list[tuple[Callable[[Playbook], object], str]] = [
    (
        lambda row: row.versions.filter(number=2).update(text=Concat("text", Value("x"))),
        "seal: version 2: text changed after it was sealed",
    ),
    (
        lambda row: row.deltas.filter(version__number=2).update(reason="another"),
        "seal: version 2: deltas changed after it was sealed",
    ),
    (
        lambda row: row.outcomes.update(status="partial"),
        "seal: version 2: 1 of its outcomes changed after it was sealed",
    ),
    (lambda row: row.outcomes.all().delete(), "seal: version 2: 1 of its outcomes were deleted"),
    (
        lambda row: row.versions.filter(number=2).update(seal="0" * 64),
        "seal: version 2: its seal does not follow from the one before",
    ),
    (lambda row: row.versions.filter(number=3).update(seal="", sealed=None), "3 has no seal"),
]


@pytest.mark.parametrize(("manipulate", "named"), MANIPULATIONS)
def test_a_manipulation_is_named(
    learned: Playbook, manipulate: Callable[[Playbook], object], named: str
) -> None:
    manipulate(learned)
    assert named in verify(str(learned.pk))


def test_a_rebuilt_chain_contradicts_an_old_serving_id(learned: Playbook, alice: User) -> None:
    old = read_playbook(playbook=learned, by=Principal.of(alice), version=2).serving_id
    rebuild(learned)
    assert "seal:" not in verify(str(learned.pk))
    assert "it was rewritten" in verify(str(learned.pk), "--serving-id", old)
    assert make_outcome(learned, alice, serving_id=old).version_assumed


def test_the_verdict_of_a_trial_is_sealed_and_recomputed(alice: User, settings: Settings) -> None:
    settings.EVOLUTION_OUTCOME_THRESHOLD, settings.TRIAL_OUTCOMES = 10_000, 10
    playbook = on_trial(alice)
    while Trial.objects.filter(playbook=playbook, status="running").exists():
        make_outcome(playbook, alice, serving_id=read(playbook, alice).serving_id)
    edit(Playbook.objects.get(pk=playbook.pk), Operation("PIN", id="str-00001"))
    trial = Trial.objects.exclude(sealed_in=None).get()
    assert [name for name in ("seal:", "trial:") if name in verify(str(playbook.pk))] == []
    Outcome.objects.filter(trial=trial, trial_position=1).update(status="failure")
    assert "trial: a version trial: its" in verify(str(playbook.pk))
    Trial.objects.filter(pk=trial.pk).update(verdict="worse")
    assert "verdicts changed" in verify(str(playbook.pk))


def test_a_correction_by_ground_truth_is_no_manipulation(learned: Playbook, alice: User) -> None:
    row = learned.outcomes.get()
    correct_outcome(outcome=row, by=Principal.of(alice), status="failure")
    assert list(check_seals(learned)) == []
    learned.outcomes.update(request_hash="0")
    assert "1 of its outcomes changed" in verify(str(learned.pk))


def test_the_seal_of_an_erased_author_still_agrees(learned: Playbook, alice: User) -> None:
    Version.objects.update(author=None)
    assert list(check_seals(learned)) == []


def check(path: Path, *serving_ids: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-I", SCRIPT, path, *serving_ids], capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def test_an_export_is_checked_offline(learned: Playbook, alice: User, tmp_path: Path) -> None:
    old, file = read(learned, alice).serving_id, tmp_path / "seals.jsonl"
    file.write_text(export_seals(playbook=learned))
    assert check(file, old) == (0, "3 seals and 1 serving_ids agree\n")
    rebuild(learned)
    file.write_text(export_seals(playbook=learned))
    assert check(file) == (0, "3 seals and 0 serving_ids agree\n")
    assert check(file, old)[0] == 1
    file.write_text(file.read_text().replace('"evolution"', '"edit"').replace('"edit"', '"x"', 1))
    assert "version 2: its seal does not follow" in check(file)[1]
    assert check(tmp_path / "missing")[0] == 2


def test_offline_a_tampered_text_version_or_verdict_is_found(
    alice: User, settings: Settings, tmp_path: Path
) -> None:
    settings.EVOLUTION_OUTCOME_THRESHOLD = 10_000
    playbook = on_trial(alice)
    harm(playbook, alice)
    sweep()
    file, text = tmp_path / "seals.jsonl", tmp_path / "version2.json"
    exported = export_seals(playbook=playbook)
    file.write_text(exported)
    sound = Rest.of(alice).get(f"/playbooks/{playbook.pk}/versions/2").content.decode()
    text.write_text(sound)
    assert check(file, str(text)) == (0, "3 seals and 0 serving_ids agree\n")
    text.write_text(sound.replace(LESSON, f"{LESSON} Or not."))
    assert check(file, str(text)) == (1, "version 2: its text is not the sealed one\n")
    first, _second, third = exported.splitlines()
    file.write_text(f"{first}\n{third}\n")
    assert "version 2 is missing" in check(file)[1]
    assert '"verdict":"worse"' in third
    file.write_text(exported.replace('"verdict":"worse"', '"verdict":"better"'))
    assert check(file) == (1, "version 3: its seal does not follow from the one before\n")


def test_seals_are_exported_to_their_owner(
    learned: Playbook, alice: User, charlie: User, staff: User
) -> None:
    path = f"/playbooks/{learned.pk}/seals"
    answer = Rest.of(alice).get(path)
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert answer.content.decode() == export_seals(playbook=learned)
    assert [Rest.of(who).get(path).status_code for who in (charlie, staff)] == [404, 404]
