"""A PostgreSQL for the length of one command, from the server programs found on this machine.

By hand: `python -m tests.harness.postgres pytest tests/evolution` sets TEST_DATABASE_URL.
PostgreSQL refuses to run as root, so root runs it as `postgres` or `nobody`.
"""

import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
)
# A crash would lose data, which nobody misses; every test commits many times.
SPEED = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "jit=off")
START_SECONDS = 30.0


class PostgresNotFound(Exception):
    """There is no server here; the message says why, as the end of a sentence."""


def find_programs() -> Path:
    """Return the folder with the newest `initdb` and `postgres`; raises NoPostgres."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    for place in PLACES:
        folders += Path("/").glob(place.lstrip("/"))
    able = [f for f in folders if (f / "initdb").is_file() and (f / "postgres").is_file()]
    if not able:
        raise PostgresNotFound("no server programs found (on Debian: apt install postgresql)")
    return max(able, key=lambda folder: [int(n) for n in re.findall(r"\d+", str(folder))] or [0])


def unprivileged_user() -> dict[str, Any]:
    """Return the options of subprocess that leave root behind; raises NoPostgres."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise PostgresNotFound("it does not run as root, and there is no user `postgres` or `nobody`")


def free_port() -> int:
    """A TCP port that is free now, and that no outgoing connection is given before it is used."""
    while True:
        port = 10_000 + secrets.randbelow(20_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextmanager
def temporary_cluster(address: str = "127.0.0.1") -> Iterator[str]:
    """Start a cluster of its own and yield its URL; stop it and remove it at the end.

    `address`: where others of its /24 reach it besides loopback.
    """
    programs, identity = find_programs(), unprivileged_user()
    # Not TMPDIR, which another user may not enter; and a socket's path must be short.
    folder = Path(tempfile.mkdtemp(prefix="ace-pg-", dir="/tmp"))  # noqa: S108 - made fresh, mode 700
    try:
        if identity:
            os.chown(folder, identity["user"], identity["group"])
        password = make_cluster(programs, folder, identity)
        with (folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {address}/24 md5\n")
        with running(programs, folder, identity, address) as port:
            login = {"PGHOST": "127.0.0.1", "PGPORT": f"{port}", "PGPASSWORD": password}
            make = [str(programs / "createdb"), "--username=ace", "ace"]
            subprocess.run(make, env=os.environ | login, check=True)
            yield f"postgres://ace:{password}@{address}:{port}/ace"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_cluster(programs: Path, folder: Path, identity: dict[str, Any]) -> str:
    """Run initdb with a password for the superuser `ace`, and return it."""
    password = secrets.token_urlsafe(16)
    secret = folder / "password"
    secret.write_text(f"{password}\n")
    if identity:
        os.chown(secret, identity["user"], identity["group"])
    # SCRAM's rounds cost each connection of a test 3 ms of CPU.
    options = ["--username=ace", "--auth=md5", f"--pwfile={secret}", "--no-sync"]
    made = subprocess.run(
        [str(programs / "initdb"), "-E", "UTF8", "--locale=C", *options, str(folder / "data")],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        **identity,
    )
    if made.returncode:
        raise PostgresNotFound(f"initdb failed: {made.stderr.strip()[-300:]}")
    return password


@contextmanager
def running(
    programs: Path, folder: Path, identity: dict[str, Any], address: str = "127.0.0.1"
) -> Iterator[int]:
    """Run the server on a free port of loopback, and there, while the block runs; the port."""
    port, log = free_port(), folder / "log"
    listen = ",".join(dict.fromkeys(("127.0.0.1", address)))
    options = [*SPEED, f"listen_addresses={listen}", "max_connections=200", f"port={port}"]
    options.append(f"unix_socket_directories={folder}")
    with log.open("wb") as output:
        server: subprocess.Popen[bytes] = subprocess.Popen(
            [str(programs / "postgres"), "-D", str(folder / "data"), *(f"--{o}" for o in options)],
            cwd=folder,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C stops the tests first, then this
            **identity,
        )
    try:
        wait_until_ready(programs, server, port, log)
        yield port
    finally:
        stop(server)


def wait_until_ready(
    programs: Path, server: "subprocess.Popen[bytes]", port: int, log: Path
) -> None:
    """Return when the server answers; raises NoPostgres when it ended or took too long."""
    pause = threading.Event()
    ask = [str(programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
    until = time.monotonic() + START_SECONDS
    while subprocess.run(ask, check=False).returncode:
        if server.poll() is not None or time.monotonic() > until:
            raise PostgresNotFound(f"the server did not start: {log.read_text()[-300:]}")
        pause.wait(0.05)


def stop(server: "subprocess.Popen[bytes]") -> None:
    """End the server: fast shutdown, then the immediate one."""
    for number, seconds in ((signal.SIGINT, 10), (signal.SIGQUIT, 10), (signal.SIGKILL, 10)):
        server.send_signal(number)
        try:
            server.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
        return


@contextmanager
def fresh_database(server: str, template: str = "") -> Iterator[str]:
    """Yield the URL of a new database beside that of `server`, empty or a copy of `template`."""
    name = f"fresh_{uuid.uuid4().hex[:12]}"
    make = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
    with psycopg.connect(server, autocommit=True) as connection:
        names = map(sql.Identifier, (name, template or "template1"))
        connection.execute(make.format(*names))
        try:
            yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        finally:
            connection.execute(drop.format(sql.Identifier(name)))


if __name__ == "__main__":
    try:
        with temporary_cluster() as url:
            environment = os.environ | {"TEST_DATABASE_URL": url}
            sys.exit(subprocess.run(sys.argv[1:], env=environment, check=False).returncode)
    except PostgresNotFound as error:
        sys.exit(f"No PostgreSQL: {error}.")
