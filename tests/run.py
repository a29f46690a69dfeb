"""What `make test` runs, quick checks first. `python -m tests.run lint|types` runs a part.

The suite runs on SQLite, then on PostgreSQL: from TEST_DATABASE_URL if set, else on a temporary
cluster, else the last lines say that PostgreSQL was not tested.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

from tests.postgres import NoPostgres, temporary_cluster

BIN = Path(sys.executable).parent
# What no database can change runs once, where it is cheaper: the engine, the pure rules, programs
# of their own, the look of things on SQLite; the generated matrices of who may reach what, and
# pages without a browser (with one they are walked on SQLite) on PostgreSQL, which minds more
# (types, NULs, ended transactions). Without a PostgreSQL everything runs on SQLite.
ON_SQLITE = (
    *("engine", "clients", "adaptation", "observability", "config", "examples", "browser"),
    *("playbooks/test_budget.py", "playbooks/test_deltas.py", "playbooks/test_diff.py"),
    *("playbooks/test_document.py", "playbooks/test_excerpt.py", "playbooks/test_formats.py"),
    *("playbooks/test_hazards.py", "playbooks/test_similarity.py"),
    *("playbooks/test_state_machine.py", "playbooks/test_votes_and_merges.py"),
    *("accounts/test_keys.py", "billing/test_pricing.py", "evolution/test_threshold.py"),
    *("accounts/test_redaction.py", "accounts/test_tables.py", "mcp_bridge/test_clients.py"),
    "mcp_bridge/test_threads.py::test_a_call_that_hangs_does_not_hold_up_the_shutdown",
    "mcp_bridge/test_threads.py::test_an_open_request_does_not_hold_up_the_shutdown",
    *("billing/test_money.py", "billing/test_standing.py"),
    *("billing/test_periods.py", "billing/test_own_plan.py"),
    "journeys/test_main_job.py::test_twenty_reports_become_a_better_playbook[rules]",
    *("journeys/test_poisoned_outcomes.py", "evolution/test_refining.py"),
    *("evolution/test_token_economics.py", "mcp_bridge/test_stdio.py"),
    *("evolution/test_orchestrator.py", "evolution/test_transcripts.py", "admin/test_sessions.py"),
    *("mcp_bridge/test_protocol.py", "mcp_bridge/test_tools.py", "mcp_bridge/test_lists.py"),
    *(
        "mcp_bridge/test_credentials.py",
        "mcp_bridge/test_contract.py",
        "mcp_bridge/test_headers.py",
    ),
    *("deploy/test_files.py", "deploy/test_first_secrets.py", "docs"),
)
ON_POSTGRES = (
    *("doors/test_rest_tenancy.py", "doors/test_rest_auth.py", "doors/test_rest_scopes.py"),
    *("doors/test_rest_bad_input.py", "doors/test_fuzz.py", "doors/test_planted_leaks.py"),
    *("doors/test_parity.py", "oauth", "playground", "mcp_bridge/test_tenancy.py"),
    *("pages", "admin", "faults/test_killed_cluster.py", "billing/test_plan_at_doors.py"),
    *("accounts/test_people.py", "accounts/test_signing_in.py", "accounts/test_llm_keys.py"),
    *("accounts/test_api_keys.py", "accounts/test_tokens.py", "deploy/test_hosts.py"),
    "journeys/test_main_job.py::test_twenty_reports_become_a_better_playbook[openai]",
)
# What a database can change about payment; all of tests/stripe runs on SQLite.
PAYING_ON_POSTGRES = ("test_life.py", "test_events.py")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LINT = {
    "ruff": ["ruff", "check", "--quiet", "."],
    "format": ["ruff", "format", "--check", "."],
    "imports": ["lint-imports", "--no-logo"],
    "migrations": ["python", "manage.py", "makemigrations", "--check", "--dry-run"],
}
TYPES = {"types": ["mypy", "."]}


@dataclass
class Begun:
    """A step that runs beside others; `seconds` is set when it has ended."""

    name: str
    process: "subprocess.Popen[bytes]"
    printed: IO[bytes]
    began: float
    seconds: float = 0

    @classmethod
    def of(cls, name: str, command: list[str]) -> "Begun":
        program, *arguments = command
        printed = tempfile.TemporaryFile()  # noqa: SIM115 - `stop` closes it
        process = subprocess.Popen(
            [str(BIN / program), *arguments],
            env=os.environ | {"ACE_LOCAL": "true"},
            stdout=printed,
            stderr=printed,
        )
        return cls(name, process, printed, time.monotonic())

    def wait(self) -> int:
        """Its exit code, when it ended; what it printed is printed by then."""
        code = self.process.wait()
        self.seconds = time.monotonic() - self.began
        self.printed.seek(0)
        print(f"== {self.name}", flush=True)
        print(self.printed.read().decode(errors="replace"), end="", flush=True)
        return code

    def stop(self) -> None:
        """It has ended, if need be before its time."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()
        self.printed.close()


class Run:
    """The steps of one `make test`, what they counted, and what was left out."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.counted: Counter[str] = Counter()
        self.left_out: list[str] = []

    def checks(self, steps: dict[str, list[str]]) -> None:
        """Run all of `steps` at once, so that one look shows everything that is wrong."""
        with self.beside(steps):
            pass

    @contextmanager
    def beside(self, steps: dict[str, list[str]]) -> Iterator[None]:
        """Run `steps` while the block runs; what they print comes at its end."""
        begun = [Begun.of(name, command) for name, command in steps.items()]
        try:
            yield
            for step in begun:
                self.note(step.name, step.wait(), step.seconds)
        finally:
            for step in begun:
                step.stop()

    def step(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        print(f"== {name}", flush=True)
        start = time.monotonic()
        code = subprocess.run(command, env=os.environ | environment, check=False).returncode
        self.note(name, code, time.monotonic() - start)

    def note(self, name: str, code: int, seconds: float) -> None:
        print(f"== {name}: {'failed' if code else 'ok'}, {seconds:.0f} s", flush=True)
        if code:
            self.failed.append(name)

    def suite(self, database: str, url: str, *, without: tuple[str, ...] = ()) -> None:
        """Run the tests on one database and add up what ran; `without` are left to the other."""
        pytest = [str(BIN / "python"), "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup"]
        pytest += [f"--{'deselect' if '::' in part else 'ignore'}=tests/{part}" for part in without]
        pytest += ["-m", "not browser"] if url or not find_browser() else []
        self.pytest(f"tests on {database}", pytest, {"TEST_DATABASE_URL": url})

    def paying(self, database: str, url: str) -> None:
        """Run the tests that need billing on, where dj-stripe's tables are there."""
        only = PAYING_ON_POSTGRES if url else ("",)
        pytest = [str(BIN / "python"), "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup"]
        pytest += ["--no-migrations", *(f"tests/stripe/{part}" for part in only)]
        pytest += ["-m", "not browser"] if not find_browser() else []
        on = {"TEST_BILLING_ENABLED": "true", "TEST_DATABASE_URL": url}
        self.pytest(f"payment on {database}", pytest, on)

    def pytest(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            command += [f"--junitxml={report}", "-o", "junit_logging=no"]
            self.step(name, command, environment)
            self.count(report)

    def count(self, report: Path) -> None:
        if not report.exists():
            return
        for suite in ElementTree.parse(report).iter("testsuite"):  # noqa: S314 - pytest wrote it
            for name in ("tests", "failures", "errors", "skipped"):
                self.counted[name] += int(suite.get(name, 0))

    def suites(self) -> None:
        """Run the suite on each database that can be had."""
        if not find_browser():
            self.left_out.append("Pages were not tested in a browser: no Chromium found.")
        try:
            with postgres() as url:
                self.suite("SQLite", "", without=ON_POSTGRES)
                self.suite("PostgreSQL", url, without=ON_SQLITE)
                self.paying("PostgreSQL", url)
        except NoPostgres as error:
            self.left_out.append(f"PostgreSQL was not tested: {error}.")
            self.suite("SQLite", "")
        self.paying("SQLite", "")

    def close(self) -> int:
        """Print what failed, was left out and was counted; return the exit code."""
        bad = self.counted["failures"] + self.counted["errors"]
        if self.failed:
            print(f"Failed: {', '.join(self.failed)}.")
        if self.counted["tests"]:
            good = self.counted["tests"] - bad - self.counted["skipped"]
            print(f"{good} passed, {bad} failed, {self.counted['skipped']} skipped")
        for line in self.left_out:
            print(line)
        return 1 if self.failed else 0


def find_browser() -> str | None:
    """Return Chromium's path, if there is one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def postgres() -> Iterator[str]:
    """Yield the URL of a PostgreSQL to test on; raises NoPostgres."""
    given = os.environ.get("TEST_DATABASE_URL", "")
    if given:
        yield given
        return
    with temporary_cluster() as url:
        yield url


def main(part: str) -> int:
    """Run the quick checks, then what is slow; stop between the two when a check failed.

    Types beside the tests: those wait often, for a browser or a process, and leave a core free.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # runs what cleans up
    run = Run()
    if part in {"lint", "all"}:
        run.checks(LINT)
    if part == "types":
        run.checks(TYPES)
    if part == "all" and run.failed:
        run.left_out.append("Types and tests were not run: mend the checks first.")
    elif part == "all":
        with run.beside(TYPES):
            run.suites()
    return run.close()


if __name__ == "__main__":
    try:
        sys.exit(main((sys.argv[1:] or ["all"])[0]))
    except KeyboardInterrupt:
        sys.exit("stopped")
