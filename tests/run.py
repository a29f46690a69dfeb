"""What `make test` runs, quick checks first. `python -m tests.run lint|types|whole` runs a part.

The suite runs on SQLite and beside it on PostgreSQL: from TEST_DATABASE_URL if set, else on a
temporary cluster, else the last lines say that PostgreSQL was not tested. A test runs once, or on
both where its marker says so; `whole` runs every test on each, those marked `nightly` too.
COVERAGE=1 measures lines and branches over all steps.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

from tests.harness import cpu_by_file, type_check
from tests.harness.migrated_template import (
    MIGRATE,
    cache_folder,
    can_keep,
    keep_template,
    kept_template,
    password_of,
    restore_command,
    template_to_migrate,
)
from tests.harness.postgres import PostgresNotFound, temporary_cluster

BIN = Path(sys.executable).parent
# Markers (pyproject.toml) say where a test runs. Without a PostgreSQL everything runs on SQLite.
ON_SQLITE, ON_POSTGRES = "(databases or not postgres)", "(databases or postgres)"
MARKS = ("mark.databases", "mark.postgres")
PROCESSES = {"SQLite": 3, "PostgreSQL": 2}
TESTS = Path(__file__).parent
COVERAGE = bool(os.environ.get("COVERAGE"))
# The headless shell first: it needs 60 % less CPU, as no window has a toolbar with its processes.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


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
# Kept for the next run, of another clone too: mypy takes 70 s of CPU without it and 5 with it.
CACHE = cache_folder()
TYPES = Step(
    "types",
    ["python", "-m", "tests.harness.type_check"],
    LOCAL | ({type_check.VARIABLE: f"{CACHE}/mypy"} if CACHE else {}),
)


@dataclass
class Begun:
    """A step that runs; `seconds` and `cpu` (its processes' seconds of CPU) are set at its end."""

    name: str
    process: "subprocess.Popen[bytes]"
    printed: IO[bytes] | None
    began: float
    seconds: float = 0
    cpu: float = 0
    stopped: bool = False

    @classmethod
    def of(cls, step: Step, *, watched: bool = False) -> "Begun":
        """Start it; what it prints is kept for its end, unless it is `watched`."""
        program, *arguments = step.command
        printed = None if watched else tempfile.TemporaryFile()  # noqa: SIM115 - `stop` closes it
        process = subprocess.Popen(
            [str(BIN / program), *arguments],
            env=os.environ | step.environment,
            stdout=printed,
            stderr=printed,
        )
        return cls(step.name, process, printed, time.monotonic())

    def wait(self) -> int:
        """Its exit code, when it ended; what was kept of its output is printed by then."""
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = code = os.waitstatus_to_exitcode(status)
        self.seconds, self.cpu = time.monotonic() - self.began, used.ru_utime + used.ru_stime
        if self.printed:
            self.printed.seek(0)
            printed = self.printed.read().decode(errors="replace")
            print(f"== {self.name}\n{printed}", end="", flush=True)
        return code

    def stop(self) -> None:
        """It has ended, if need be before its time."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()
        if self.printed:
            self.printed.close()


class Lane:
    """Steps that run one after the other beside others; each prints at its end."""

    def __init__(self, run: "Run", steps: Sequence[Step]) -> None:
        self.run, self.left = run, list(steps)
        self.begun = Begun.of(self.left.pop(0))
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def _work(self) -> None:
        while True:
            begun = self.begun
            code = begun.wait()
            if begun.stopped:
                return
            self.run.note(begun, code)
            begun.stop()
            if not self.left:
                return
            self.begun = Begun.of(self.left.pop(0))

    def stop(self) -> None:
        """It ends, if need be before its time."""
        self.left.clear()
        if self.thread.is_alive():
            self.begun.stopped = True
            self.begun.process.terminate()
            self.thread.join()
        self.begun.stop()


class Run:
    """The steps of one `make test`, what they counted, and what was left out."""

    def __init__(self, reports: Path, *, whole: bool = False) -> None:
        self.reports, self.whole = reports, whole
        self.began = time.monotonic()
        self.failed: list[str] = []
        self.left_out: list[str] = []
        self.templates: dict[str, str] = {}

    def checks(self, *steps: Step) -> None:
        """Run all of `steps` at once, so that one look shows everything that is wrong."""
        with self.beside(*((step,) for step in steps)):
            pass

    @contextmanager
    def beside(self, *lanes: Sequence[Step]) -> Iterator[None]:
        """Run `lanes` while the block runs, the steps of each one after the other."""
        begun = [Lane(self, steps) for steps in lanes]
        try:
            yield
            for lane in begun:
                lane.thread.join()
        finally:
            for lane in begun:
                lane.stop()

    def step(self, step: Step) -> None:
        """Run a step that may be watched."""
        print(f"== {step.name}", flush=True)
        begun = Begun.of(step, watched=True)
        try:
            self.note(begun, begun.wait())
        finally:
            begun.stop()

    def note(self, step: Begun, code: int) -> None:
        said = "failed" if code else "ok"
        print(f"== {step.name}: {said}, {step.seconds:.0f} s, {step.cpu:.0f} s CPU", flush=True)
        if code:
            self.failed.append(step.name)

    def suite(self, database: str, url: str, which: str, marks: Sequence[str] = ()) -> list[Step]:
        """The tests on one database: all, or those whose markers are `which`.

        In processes that share nothing and read other files each, of those with one of `marks`.
        More of them than cores: a test that waits for processes and clocks leaves none idle.
        """
        files, count = test_files(*marks), PROCESSES[database]
        numbered = [(f", {n + 1} of {count}", files[n::count]) for n in range(count)]
        return [self._suite(database, url, which, some, part) for part, some in numbered]

    def _suite(self, database: str, url: str, which: str, files: Sequence[str], part: str) -> Step:
        marked = [which, "" if self.whole else "not nightly", "not browser"]
        # Without Playwright's plugin its tests cannot even be collected.
        pytest = ["-m", " and ".join(filter(None, marked)), "-p", "no:playwright", *files]
        on = {"TEST_DATABASE_URL": url, "TEST_DATABASE_TEMPLATE": self.templates.get(database, "")}
        return self.pytest(f"tests on {database}{part}", pytest, on)

    def in_browser(self) -> Step:
        """The tests in Chromium, in one process, for its start costs as much as ten of them."""
        pytest = ["tests/browser", "-m", "" if self.whole else "not nightly"]
        on = {"TEST_DATABASE_URL": "", "TEST_DATABASE_TEMPLATE": self.templates.get("SQLite", "")}
        return self.pytest("tests in a browser", pytest, on)

    def paying(self, database: str, url: str, which: str = "") -> Step:
        """The tests that need billing on, where dj-stripe's tables are there."""
        marked = [which, "not browser" if url or not find_browser() else ""]
        pytest = [
            "--no-migrations",
            "tests/billing/stripe",
            "-m",
            " and ".join(filter(None, marked)),
        ]
        on = {"TEST_BILLING_ENABLED": "true", "TEST_DATABASE_URL": url}
        on["TEST_SWITCHED_TEMPLATE"] = self.templates.get("SQLite", "")
        return self.pytest(f"payment on {database}", pytest, on | {"TEST_DATABASE_TEMPLATE": ""})

    def pytest(self, name: str, arguments: list[str], environment: dict[str, str]) -> Step:
        report = ["-o", "junit_logging=no", f"--junitxml={self.reports / name}.xml"]
        report += ["--cov", "--cov-report="] if COVERAGE else []
        command = ["python", "-m", "pytest", "-q", "-n0", *report, *arguments]
        environment = environment | {"COVERAGE_FILE": str(self.reports / f"{name}.coverage")}
        environment[cpu_by_file.FOLDER] = str(self.reports)
        # Compiling the tests is half of what their collection costs every process.
        return Step(name, command, environment | {"PYTHONDONTWRITEBYTECODE": ""})

    def coverage(self) -> None:
        """Put together what the steps covered, in .coverage, and print what they did not."""
        found = map(str, self.reports.glob("*.coverage"))
        self.step(Step("coverage of all steps", ["coverage", "combine", "--quiet", *found]))
        self.step(Step("lines and branches", ["coverage", "report"]))

    @contextmanager
    def migrated(self, servers: dict[str, str]) -> Iterator[None]:
        """Migrate an empty database of each kind, a copy of which every test begins with."""
        with ExitStack() as stack:
            steps, to_keep = [], []
            for database, url in servers.items():
                name, environment = stack.enter_context(template_to_migrate(url))
                command, url = MIGRATE, environment.get("DATABASE_URL", "")
                if CACHE and can_keep(url):
                    kept = kept_template(database, CACHE)
                    if kept.exists():
                        command = restore_command(kept, name, url)
                    else:
                        to_keep.append((kept, name, url))
                environment = LOCAL | environment | password_of(url)
                steps.append(Step(f"migrations on {database}", command, environment))
                self.templates[database] = name
            self.checks(*steps)
            if self.failed:
                self.templates.clear()
            else:
                for each in to_keep:
                    keep_template(*each)
            yield

    def suites(self) -> None:
        """Run the suite on each database that can be had, and types and payment, side by side."""
        if not find_browser():
            self.left_out.append("Pages were not tested in a browser: no Chromium found.")
        on_sqlite, on_postgres = ("", "") if self.whole else (ON_SQLITE, ON_POSTGRES)
        try:
            with postgres() as url, self.migrated({"SQLite": "", "PostgreSQL": url}):
                # Of a fifth of the tests it reads the files of these alone.
                marks = () if self.whole else MARKS
                on_server = self.suite("PostgreSQL", url, on_postgres, marks)
                self.side_by_side(
                    on_sqlite, on_server, [self.paying("PostgreSQL", url, on_postgres)]
                )
        except PostgresNotFound as error:
            self.left_out.append(f"PostgreSQL was not tested: {error}.")
            with self.migrated({"SQLite": ""}):
                self.side_by_side("", (), ())
        if COVERAGE:
            self.coverage()

    def side_by_side(self, which: str, beside: Sequence[Step], last: Sequence[Step]) -> None:
        """Run what runs on SQLite, its first part watched, and each of `beside`, all at once.

        One lane has what is short, one after the other: types, the browser, payment, `last`.
        """
        watched, *others = self.suite("SQLite", "", which)
        browser = (self.in_browser(),) if find_browser() else ()
        short = (TYPES, *browser, self.paying("SQLite", "", which), *last)
        with self.beside(*([step] for step in (*others, *beside)), short):
            self.step(watched)

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
        print(*cpu_by_file.dearest(self.reports), sep="\n")
        if self.failed:
            print(f"Failed: {', '.join(self.failed)}.")
        if counted["tests"]:
            good = counted["tests"] - bad - counted["skipped"]
            print(f"{good} passed, {bad} failed, {counted['skipped']} skipped")
        for line in self.left_out:
            print(line)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall, cpu = time.monotonic() - self.began, used.ru_utime + used.ru_stime
        print(f"{wall / 60:.1f} min wall, {cpu / 60:.1f} min CPU")
        return 1 if self.failed else 0


def test_files(*marks: str) -> list[str]:
    """The files of tests, or those with one of `marks`; payment and browser have their steps.

    The largest first: every second or third of them takes about as long as the others.
    """
    files = sorted(TESTS.rglob("test_*.py"), key=lambda file: (-file.stat().st_size, file))
    files = [file for file in files if not {"stripe", "browser"} & {*file.parts}]
    return [str(f) for f in files if not marks or any(mark in f.read_text() for mark in marks)]


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
        run = Run(Path(reports), whole=part == "whole")
        if part in {"lint", "all", "whole"}:
            run.checks(*LINT)
        if part == "types":
            run.checks(TYPES)
        if part in {"all", "whole"} and run.failed:
            run.left_out.append("Types and tests were not run: mend the checks first.")
        elif part in {"all", "whole"}:
            run.suites()
        return run.close()


if __name__ == "__main__":
    try:
        sys.exit(main((sys.argv[1:] or ["all"])[0]))
    except KeyboardInterrupt:
        sys.exit("stopped")
