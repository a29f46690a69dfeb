"""`make test` itself: the PostgreSQL it starts, what it counts, and what it says at the end."""

import os
import stat
from pathlib import Path

import psycopg
import pytest

from tests import postgres
from tests.run import ON_POSTGRES, ON_SQLITE, Run

REPORT = '<testsuites><testsuite tests="9" failures="1" errors="2" skipped="3"/></testsuites>'


def has_server() -> bool:
    try:
        return bool(postgres.find_programs())
    except postgres.NoPostgres:
        return False


@pytest.mark.skipif(not has_server(), reason="there are no PostgreSQL programs here")
def test_a_temporary_cluster_serves_and_leaves_nothing() -> None:
    with postgres.temporary_cluster() as url, psycopg.connect(url) as connection:
        found = connection.execute("SHOW data_directory").fetchone()
        assert found is not None
        assert stat.S_IMODE(Path(found[0]).parent.stat().st_mode) == 0o700
    assert not Path(found[0]).parent.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url, connect_timeout=2)


def test_without_server_programs_it_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(postgres, "PLACES", ())
    with pytest.raises(postgres.NoPostgres, match="no server programs found"):
        postgres.find_programs()


def test_root_becomes_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert postgres.user_to_be()["user"] != 0


def test_the_last_lines_count_what_ran_and_name_what_did_not(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    run = Run()
    run.count(report)
    run.count(report)
    run.left_out.append("PostgreSQL was not tested: no server programs found.")
    run.close()
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["6 passed, 6 failed, 6 skipped", run.left_out[0]]


def test_a_failed_step_fails_the_run(capfd: pytest.CaptureFixture[str]) -> None:
    run = Run()
    run.step("quick", ["false"], {})
    run.step("slow", ["true"], {})
    assert run.close() == 1
    assert "Failed: quick." in capfd.readouterr().out


def test_steps_beside_others_are_all_told_of_and_any_fails_the_run(
    capfd: pytest.CaptureFixture[str],
) -> None:
    run = Run()
    with run.beside({"good": ["python", "-c", "print('fine')"], "bad": ["python", "-c", "1 / 0"]}):
        print("meanwhile")
    assert run.close() == 1
    said = capfd.readouterr().out
    assert said.index("meanwhile") < said.index("fine") < said.index("== good: ok")
    assert "ZeroDivisionError" in said
    assert "Failed: bad." in said


def test_a_step_beside_others_ends_with_them() -> None:
    run, steps = Run(), {"endless": ["python", "-c", "import threading; threading.Event().wait()"]}
    with pytest.raises(KeyboardInterrupt), run.beside(steps):
        raise KeyboardInterrupt
    assert run.failed == []


def test_no_test_is_left_to_the_other_database_by_both() -> None:
    tests = Path(__file__).parents[1]
    named = {tests / name.partition("::")[0] for name in (*ON_SQLITE, *ON_POSTGRES)}
    assert all(path.exists() for path in named)
    left = {suite: {tests / name for name in suite} for suite in (ON_SQLITE, ON_POSTGRES)}
    for path in left[ON_POSTGRES]:
        assert not {path, *path.parents} & left[ON_SQLITE], path


def test_without_a_postgresql_everything_runs_on_sqlite(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_here() -> None:
        raise postgres.NoPostgres("no server programs found")

    ran: list[tuple[str, tuple[str, ...]]] = []
    monkeypatch.setattr("tests.run.postgres", none_here)
    run = Run()
    monkeypatch.setattr(run, "suite", lambda name, url, without=(): ran.append((name, without)))
    monkeypatch.setattr(run, "paying", lambda name, url: ran.append((f"{name}, paying", ())))
    run.suites()
    assert ran == [("SQLite", ()), ("SQLite, paying", ())]
