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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

from tests.migrated import MIGRATE, to_migrate
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
    "accounts/test_turns.py",
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
# One more than the two cores that the time is promised for: tests wait for browsers and processes.
WORKERS = "3"


@dataclass(frozen=True)
class Step:
    """A command of this virtual environment, and what it finds in the environment."""

    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)


LOCAL = {"ACE_LOCAL": "true"}
LINT = (
    Step("ruff", ["ruff", "check", "--quiet", "."]),
    Step("format", ["ruff", "format", "--check", "."]),
    Step("imports", ["lint-imports", "--no-logo"], LOCAL),
    Step("migrations", ["python", "manage.py", "makemigrations", "--check", "--dry-run"], LOCAL),
)
TYPES = Step("types", ["mypy", "."], LOCAL)


@dataclass
class Begun:
    """A step that runs; `seconds` is set when it has ended."""

    name: str
    process: "subprocess.Popen[bytes]"
    printed: IO[bytes]
    began: float
    seconds: float = 0

    @classmethod
    def of(cls, step: Step) -> "Begun":
        program, *arguments = step.command
        printed = tempfile.TemporaryFile()  # noqa: SIM115 - `stop` closes it
        process = subprocess.Popen(
            [str(BIN / program), *arguments],
            env=os.environ | step.environment,
            stdout=printed,
            stderr=printed,
        )
        return cls(step.name, process, printed, time.monotonic())

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

    def __init__(self, reports: Path) -> None:
        self.reports = reports
        self.failed: list[str] = []
        self.left_out: list[str] = []
        self.templates: dict[str, str] = {}

    def checks(self, *steps: Step) -> None:
        """Run all of `steps` at once, so that one look shows everything that is wrong."""
        with self.beside(*steps):
            pass

    @contextmanager
    def beside(self, *steps: Step) -> Iterator[None]:
        """Run `steps` while the block runs; what they print comes at its end."""
        begun = [Begun.of(step) for step in steps]
        try:
            yield
            for step in begun:
                self.note(step.name, step.wait(), step.seconds)
        finally:
            for step in begun:
                step.stop()

    def step(self, step: Step) -> None:
        """Run a step that may be watched."""
        print(f"== {step.name}", flush=True)
        program, *arguments = step.command
        command, start = [str(BIN / program), *arguments], time.monotonic()
        code = subprocess.run(command, env=os.environ | step.environment, check=False).returncode
        self.note(step.name, code, time.monotonic() - start)

    def note(self, name: str, code: int, seconds: float) -> None:
        print(f"== {name}: {'failed' if code else 'ok'}, {seconds:.0f} s", flush=True)
        if code:
            self.failed.append(name)

    def suite(self, database: str, url: str, *, without: tuple[str, ...] = ()) -> Step:
        """The tests on one database; `without` are left to the other."""
        pytest = ["-n", WORKERS]
        pytest += [f"--{'deselect' if '::' in part else 'ignore'}=tests/{part}" for part in without]
        pytest += ["-p", "no:playwright"] if url else []
        pytest += ["-m", "not browser"] if url or not find_browser() else []
        on = {"TEST_DATABASE_URL": url, "TEST_DATABASE_TEMPLATE": self.templates.get(database, "")}
        return self.pytest(f"tests on {database}", pytest, on)

    def paying(self, database: str, url: str) -> Step:
        """The tests that need billing on, where dj-stripe's tables are there."""
        only = PAYING_ON_POSTGRES if url else ("",)
        pytest = ["-n", "0", "--no-migrations", *(f"tests/stripe/{part}" for part in only)]
        pytest += ["-m", "not browser"] if not find_browser() else []
        on = {"TEST_BILLING_ENABLED": "true", "TEST_DATABASE_URL": url}
        on["TEST_SWITCHED_TEMPLATE"] = self.templates.get("SQLite", "")
        return self.pytest(f"payment on {database}", pytest, on | {"TEST_DATABASE_TEMPLATE": ""})

    def pytest(self, name: str, arguments: list[str], environment: dict[str, str]) -> Step:
        report = ["-o", "junit_logging=no", f"--junitxml={self.reports / name}.xml"]
        command = ["python", "-m", "pytest", "-q", *report, *arguments]
        # Compiling the tests is half of what their collection costs every process.
        return Step(name, command, environment | {"PYTHONDONTWRITEBYTECODE": ""})

    @contextmanager
    def migrated(self, servers: dict[str, str]) -> Iterator[None]:
        """Migrate an empty database of each kind, a copy of which every test begins with."""
        with ExitStack() as stack:
            steps = []
            for database, url in servers.items():
                name, environment = stack.enter_context(to_migrate(url))
                steps.append(Step(f"migrations on {database}", MIGRATE, LOCAL | environment))
                self.templates[database] = name
            self.checks(*steps)
            if self.failed:
                self.templates.clear()
            yield

    def suites(self) -> None:
        """Run the suite on each database that can be had, types and payment beside it."""
        if not find_browser():
            self.left_out.append("Pages were not tested in a browser: no Chromium found.")
        try:
            with postgres() as url, self.migrated({"SQLite": "", "PostgreSQL": url}):
                with self.beside(TYPES):
                    self.step(self.suite("SQLite", "", without=ON_POSTGRES))
                with self.beside(self.paying("PostgreSQL", url), self.paying("SQLite", "")):
                    self.step(self.suite("PostgreSQL", url, without=ON_SQLITE))
        except NoPostgres as error:
            self.left_out.append(f"PostgreSQL was not tested: {error}.")
            with self.migrated({"SQLite": ""}), self.beside(TYPES, self.paying("SQLite", "")):
                self.step(self.suite("SQLite", ""))

    def count(self) -> Counter[str]:
        """What the reports add up to."""
        counted: Counter[str] = Counter()
        for report in self.reports.glob("*.xml"):
            for suite in ElementTree.parse(report).iter("testsuite"):  # noqa: S314 - pytest wrote it
                for name in ("tests", "failures", "errors", "skipped"):
                    counted[name] += int(suite.get(name, 0))
        return counted

    def close(self) -> int:
        """Print what failed, was left out and was counted; return the exit code."""
        counted = self.count()
        bad = counted["failures"] + counted["errors"]
        if self.failed:
            print(f"Failed: {', '.join(self.failed)}.")
        if counted["tests"]:
            good = counted["tests"] - bad - counted["skipped"]
            print(f"{good} passed, {bad} failed, {counted['skipped']} skipped")
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
    """Run the quick checks, then what is slow; stop between the two when a check failed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # runs what cleans up
    with tempfile.TemporaryDirectory() as reports:
        run = Run(Path(reports))
        if part in {"lint", "all"}:
            run.checks(*LINT)
        if part == "types":
            run.checks(TYPES)
        if part == "all" and run.failed:
            run.left_out.append("Types and tests were not run: mend the checks first.")
        elif part == "all":
            run.suites()
        return run.close()


if __name__ == "__main__":
    try:
        sys.exit(main((sys.argv[1:] or ["all"])[0]))
    except KeyboardInterrupt:
        sys.exit("stopped")
