"""`make test` itself: the PostgreSQL it starts, what it counts, and what it says at the end."""

import os
import re
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import psycopg
import pytest
from _pytest.mark.expression import Expression

from tests.harness import postgres, type_check
from tests.harness.migrated_template import (
    keep_template,
    kept_template,
    password_of,
    restore_command,
)
from tests.run import ON_POSTGRES, ON_SQLITE, TESTS, Run, Step

REPORT = '<testsuites><testsuite tests="9" failures="1" errors="2" skipped="3"/></testsuites>'


def has_server() -> bool:
    try:
        return bool(postgres.find_programs())
    except postgres.PostgresNotFound:
        return False


@pytest.mark.skipif(not has_server(), reason="there are no PostgreSQL programs here")
def test_a_temporary_cluster_serves_and_leaves_nothing(tmp_path: Path) -> None:
    with postgres.temporary_cluster() as url, psycopg.connect(url) as connection:
        found = connection.execute("SHOW data_directory").fetchone()
        assert found is not None
        assert stat.S_IMODE(Path(found[0]).parent.stat().st_mode) == 0o700
        a_kept_database_is_restored_whole(url, tmp_path / "kept")
    assert not Path(found[0]).parent.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url, connect_timeout=2)


def a_kept_database_is_restored_whole(server: str, kept: Path) -> None:
    with postgres.fresh_database(server) as url:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE a (b serial PRIMARY KEY)")
            connection.execute("INSERT INTO a VALUES (7)")
        keep_template(kept, "", url)
    with postgres.fresh_database(server) as url:
        environment = os.environ | password_of(url)
        subprocess.run(restore_command(kept, "", url), check=True, env=environment)
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT b FROM a").fetchall() == [(7,)]


def test_without_server_programs_it_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(postgres, "PLACES", ())
    with pytest.raises(postgres.PostgresNotFound, match="no server programs found"):
        postgres.find_programs()


def test_root_becomes_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert postgres.unprivileged_user()["user"] != 0


def test_the_last_lines_count_what_ran_and_name_what_did_not(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("tests on SQLite.xml", "tests on PostgreSQL.xml"):
        (tmp_path / name).write_text(REPORT)
    run = Run(tmp_path)
    run.left_out.append("PostgreSQL was not tested: no server programs found.")
    run.close()
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3:-1] == ["6 passed, 6 failed, 6 skipped", run.left_out[0]]
    assert re.fullmatch(r"[0-9.]+ min wall, [0-9.]+ min CPU", lines[-1])


def test_a_failed_step_fails_the_run(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.step(Step("quick", ["python", "-c", "1 / 0"]))
    run.step(Step("slow", ["python", "-c", ""]))
    assert run.close() == 1
    assert "Failed: quick." in capfd.readouterr().out


def test_parallel_steps_are_all_reported_and_any_fails_the_run(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run, good = Run(tmp_path), Step("good", ["python", "-c", "print('fine')"])
    with run.beside((good, good), [Step("bad", ["python", "-c", "1 / 0"])]):
        pass
    assert run.close() == 1
    output = capfd.readouterr().out
    assert output.index("== good\n") < output.index("fine") < output.index("== good: ok")
    assert output.count("== good: ok") == 2
    assert "ZeroDivisionError" in output
    assert "Failed: bad." in output


def test_a_step_beside_others_ends_with_them(tmp_path: Path) -> None:
    run, endless = Run(tmp_path), "import threading; threading.Event().wait()"
    with pytest.raises(KeyboardInterrupt), run.beside([Step("endless", ["python", "-c", endless])]):
        raise KeyboardInterrupt
    assert run.failed == []


@pytest.mark.parametrize("markers", [(), ("databases",), ("postgres",), ("databases", "postgres")])
def test_every_test_runs_on_at_least_one_database(markers: tuple[str, ...]) -> None:
    def is_marked(name: str, /, **_: str | int | bool | None) -> bool:
        return name in markers

    def selects(expression: str) -> bool:
        return Expression.compile(expression).evaluate(is_marked)

    assert selects(ON_SQLITE) or selects(ON_POSTGRES)
    if "databases" in markers:
        assert selects(ON_SQLITE) and selects(ON_POSTGRES)


def test_the_processes_have_every_file_once(tmp_path: Path) -> None:
    parts = [step.command for step in Run(tmp_path).suite("SQLite", "", "")]
    found = [Path(word) for part in parts for word in part if word.endswith(".py")]
    elsewhere = {"stripe", "browser"}
    assert sorted(found) == [
        f for f in sorted(TESTS.rglob("test_*.py")) if not elsewhere & {*f.parts}
    ]


def test_without_a_postgresql_everything_runs_on_sqlite(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def none_here() -> None:
        raise postgres.PostgresNotFound("no server programs found")

    def noted(*lanes: Sequence[Step]) -> AbstractContextManager[None]:
        beside.extend(step for lane in lanes for step in lane)
        return nullcontext()

    watched: list[Step] = []
    beside: list[Step] = []
    run = Run(tmp_path)
    monkeypatch.setattr("tests.run.CACHE", None)
    monkeypatch.setattr("tests.run.COVERAGE", False)
    monkeypatch.setattr("tests.run.postgres", none_here)
    monkeypatch.setattr("tests.run.find_browser", lambda: "/usr/bin/chromium")
    monkeypatch.setattr(run, "step", watched.append)
    monkeypatch.setattr(run, "beside", noted)
    run.suites()
    assert [step.name for step in watched] == ["tests on SQLite, 1 of 3"]
    assert "not nightly and not browser" in watched[0].command
    assert [step.name for step in beside] == [
        *("migrations on SQLite", "tests on SQLite, 2 of 3", "tests on SQLite, 3 of 3"),
        *("types", "tests in a browser", "payment on SQLite"),
    ]


def test_the_tests_begin_with_what_was_migrated_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run, made = Run(tmp_path), "import os, pathlib; pathlib.Path(os.environ['NEW']).touch()"
    monkeypatch.setattr("tests.run.CACHE", None)
    monkeypatch.setattr("tests.run.MIGRATE", ["python", "-c", made])
    monkeypatch.setattr(
        "tests.run.template_to_migrate", lambda url: nullcontext(("a-name", {"NEW": url}))
    )
    with run.migrated({"SQLite": str(tmp_path / "made")}):
        assert (tmp_path / "made").exists()
        assert run.suite("SQLite", "", "")[0].environment["TEST_DATABASE_TEMPLATE"] == "a-name"
        assert run.paying("SQLite", "").environment["TEST_DATABASE_TEMPLATE"] == ""


def test_what_was_migrated_is_kept_for_the_next_run_of_the_same_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = "import os, pathlib; pathlib.Path(os.environ['ACE_DATA_DIR'], 'ace.sqlite3').touch()"
    monkeypatch.setattr("tests.run.CACHE", tmp_path)
    monkeypatch.setattr("tests.run.MIGRATE", ["python", "-c", made])
    with Run(tmp_path).migrated({"SQLite": ""}):
        (kept,) = tmp_path.glob("*.template")
    kept.write_text("kept")
    monkeypatch.setattr("tests.run.MIGRATE", ["python", "-c", "1 / 0"])
    run = Run(tmp_path)
    with run.migrated({"SQLite": ""}):
        assert Path(run.templates["SQLite"]).read_text() == "kept"
    monkeypatch.setattr("tests.harness.migrated_template.sys.version", "of tomorrow")
    with run.migrated({"SQLite": ""}):
        assert run.failed == ["migrations on SQLite"]
    assert list(tmp_path.glob("*.template")) == [kept]


def test_a_template_is_of_the_models_and_migrations(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tests.harness.migrated_template.ROOT", tmp_path)
    names = set()
    for file in ("web/views.py", "models/keys.py", "migrations/0002_add_keys.py"):
        (tmp_path / "accounts" / file).parent.mkdir(parents=True)
        (tmp_path / "accounts" / file).write_text(file)
        names.add(kept_template("SQLite", tmp_path))
    without = kept_template("SQLite", tmp_path)
    (tmp_path / "accounts/web/views.py").write_text("changed")
    assert kept_template("SQLite", tmp_path) == without
    assert len(names) == 3


@pytest.mark.parametrize(
    ("kept", "empty", "tries", "ends"), [(0, 1, 1, 0), (1, 0, 2, 0), (2, 0, 2, 0), (1, 1, 2, 1)]
)
def test_errors_of_types_are_those_of_an_empty_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kept: int, empty: int, tries: int, ends: int
) -> None:
    """The stand-in for mypy ends with `kept` while the cache is there, and else with `empty`."""
    cache, log = tmp_path / "cache", tmp_path / "log"
    cache.mkdir()
    script = "import os, sys; open(sys.argv[1], 'a').write('x'); "
    script += f"sys.exit({kept} if os.path.exists(sys.argv[2]) else {empty})"
    monkeypatch.setenv(type_check.VARIABLE, str(cache))
    assert type_check.check([sys.executable, "-c", script, str(log), str(cache)]) == ends
    assert len(log.read_text()) == tries


def test_where_a_migration_fails_every_test_makes_its_own_database(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = Run(tmp_path)
    monkeypatch.setattr("tests.run.CACHE", tmp_path)
    monkeypatch.setattr("tests.run.MIGRATE", ["python", "-c", "1 / 0"])
    with run.migrated({"SQLite": ""}):
        assert run.suite("SQLite", "", "")[0].environment["TEST_DATABASE_TEMPLATE"] == ""
    assert run.failed == ["migrations on SQLite"]
