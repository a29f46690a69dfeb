"""PostgreSQL stopped at once, again and again: what was acknowledged is stored, work goes on."""

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.harness import platform_process as journeys
from tests.harness.fault_injection import runner
from tests.harness.fault_injection.agents import Reporters, Rest, platform_with_model, timed, verify
from tests.harness.postgres import find_programs, free_port, make_cluster, stop, unprivileged_user
from tests.harness.waiting import wait_until

STOPS, WITHIN, DOWN_FOR = 8, 15.0, 2.0
LANES = 6


class Server:
    """A PostgreSQL with its safety on, that can be stopped as by a power cut of the program."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.identity = find_programs(), unprivileged_user()
        self.folder, self.port = folder, free_port()
        if self.identity:
            os.chown(folder, self.identity["user"], self.identity["group"])
        self.password = make_cluster(self.programs, folder, self.identity)
        self.process = self.start()
        login = {"PGHOST": "127.0.0.1", "PGPORT": f"{self.port}", "PGPASSWORD": self.password}
        command = [str(self.programs / "createdb"), "--username=ace", "ace"]
        subprocess.run(command, env=os.environ | login, check=True)

    @property
    def url(self) -> str:
        return f"postgres://ace:{self.password}@127.0.0.1:{self.port}/ace"

    def start(self) -> "subprocess.Popen[bytes]":
        options = ["listen_addresses=127.0.0.1", "max_connections=200", f"port={self.port}"]
        options.append(f"unix_socket_directories={self.folder}")
        self.process = subprocess.Popen(
            [
                str(self.programs / "postgres"),
                "-D",
                str(self.folder / "data"),
                *(f"--{option}" for option in options),
            ],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **self.identity,
        )
        ask = [str(self.programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        wait_until(lambda: subprocess.run(ask, check=False).returncode == 0, seconds=60)
        return self.process

    def stop_at_once(self) -> None:
        """Immediate shutdown: no checkpoint, every session cut off."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(30)


@contextmanager
def server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="ace-pg-", dir="/tmp"))  # noqa: S108 - made fresh, mode 700
    try:
        made = Server(folder)
        try:
            yield made
        finally:
            stop(made.process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(options: runner.Options) -> int:
    count, took = options.count or STOPS, []
    wrong: list[str] = []
    with server() as postgres:
        url = postgres.url
        with platform_on(url), platform_with_model() as (platform, _):
            rest = Rest(platform)
            playbooks = [rest.make_playbook(f"Stop {number}") for number in range(LANES)]
            with Reporters(platform, playbooks, per_second=6) as reporters:
                for _number in range(count):
                    threading.Event().wait(4)
                    postgres.stop_at_once()
                    threading.Event().wait(DOWN_FOR)
                    postgres.start()
                    took.append(work_goes_on(url))
            drained = timed(lambda: rest.is_drained(playbooks), seconds=180)
            stored = outcomes_in(url)
            secrets = {"SECRET_KEY": "s" * 40, "JWT_SECRET_KEY": "j" * 40, "HTTPS": "false"}
            said = verify(
                {"DATABASE_URL": url, **secrets, "DJANGO_SETTINGS_MODULE": "config.settings.base"}
            )
    lost = set(reporters.acknowledged) - stored
    figures: dict[str, Any] = {
        "stops": count,
        "acknowledged": len(reporters.acknowledged),
        "stored": len(stored),
        "acknowledged but not stored": len(lost),
        "seconds until an evolution completed": took,
        "seconds until all was learned": drained,
        "verify": said,
    }
    if lost:
        wrong.append(f"{len(lost)} acknowledged outcomes are gone")
    if max(took) > WITHIN:
        wrong.append(f"work went on only after {max(took)} s")
    if "verified" not in said:
        wrong.append("verify found problems")
    return runner.report(options, figures, wrong)


@contextmanager
def platform_on(url: str) -> Iterator[None]:
    """The platform takes this database: one made for it would need a connection that lasts."""
    own = journeys.own_database

    @contextmanager
    def given(template: str = "") -> Iterator[str]:
        yield url

    journeys.own_database = given
    try:
        yield
    finally:
        journeys.own_database = own


def work_goes_on(url: str) -> float:
    """Seconds until an evolution completes that had not when the server came back."""
    began = time.monotonic()
    before = completed_in(url)
    wait_until(lambda: completed_in(url) > before, seconds=120)
    return round(time.monotonic() - began, 1)


def completed_in(url: str) -> int:
    with psycopg.connect(url) as connection:
        query = "SELECT count(*) FROM evolution_evolutionjob WHERE status = 'completed'"
        row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


def outcomes_in(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        query = "SELECT id FROM evolution_outcome WHERE processed_at IS NOT NULL"
        return {str(row[0]) for row in connection.execute(query)}
