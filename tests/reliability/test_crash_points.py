"""The short form of the fault harness: every crash point once, a sample of them by day."""

import json
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from tests.harness.fault_injection import seeded_bugs
from tests.harness.fault_injection.crash_points import POINTS, SHARES
from tests.harness.fault_injection.mutants import MUTANTS, Mutant

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]


def run(*arguments: str) -> dict[str, Any]:
    name = str(connection.settings_dict["NAME"])
    connection.close()
    database = "sqlite" if connection.vendor == "sqlite" else "postgres"
    command = [
        sys.executable,
        "-m",
        "tests.harness.fault_injection",
        *arguments,
        "--existing",
        name,
    ]
    done = subprocess.run(
        # Fewer playbooks, and more children find no job that can be brought to their point.
        [*command, "--database", database, "--seconds", "180", "--lanes", "16"],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    verdict: dict[str, Any] = json.loads(done.stdout)
    return verdict


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_each_crash_point_names_a_function_that_exists(point: Any) -> None:
    owner, name = point.find()
    assert callable(getattr(owner, name))


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_each_seeded_fault_breaks_a_function_that_exists(
    monkeypatch: pytest.MonkeyPatch, mutant: Mutant
) -> None:
    broken: list[tuple[Any, str]] = []
    monkeypatch.setattr(
        seeded_bugs, "_patch", lambda target, name, _: broken.append((target, name))
    )
    monkeypatch.setattr(seeded_bugs, "AFTER_MIGRATE", [])
    mutant.seed()
    assert broken
    assert [name for target, name in broken if not hasattr(target, name)] == []


def test_each_half_has_points_of_every_family() -> None:
    def families(*points: Any) -> set[str]:
        return {point.name.partition(":")[0] for point in points}

    assert families(*SHARES["even"]) == families(*SHARES["odd"]) == families(*POINTS)
    assert {*SHARES["ninth"]} < {*SHARES["even"]}
    assert {*POINTS} == {*SHARES["even"], *SHARES["odd"]}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "share",
    [
        pytest.param("ninth", marks=pytest.mark.postgres),
        pytest.param("even", marks=pytest.mark.nightly),
        pytest.param("odd", marks=pytest.mark.nightly),
    ],
)
def test_killed_once_at_every_point_nothing_is_lost_and_nothing_happens_twice(share: str) -> None:
    count = len(SHARES[share])
    verdict = run("kills", "--share", share, "--count", str(count))
    # For the long form, on a machine that has time: how soon a job is taken over, and that a kill
    # costs one call. On a busy one more of a job's calls are under way at once; none is paid twice
    # that was not.
    timely = ("takeover", "kills could cause")
    assert [line for line in verdict["wrong"] if not any(word in line for word in timely)] == []
    assert verdict["points reached"] == count


@pytest.mark.nightly
@pytest.mark.skipif(connection.vendor != "sqlite", reason="once is enough")
@pytest.mark.django_db(transaction=True)
def test_a_seeded_fault_is_found() -> None:
    """That the harness sees; the others are `python -m tests.harness.fault_injection mutants`."""
    found = run("kills", "--count", "5", "--mutant", "votes_without_identity")["wrong"]
    assert any(line.startswith("verify: {'history'") for line in found)
