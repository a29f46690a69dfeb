"""`python -m benchmarks`: every figure of docs/engineering/BENCHMARKS.md, side by side in one run.

    python -m benchmarks                                      # all of it: some 11 minutes
    python -m benchmarks --parts interfaces lists --seconds 1      # a look
    python -m benchmarks --write                              # and put them into docs/

Clients, server, database and model share the machine, so only ratios within one run say much.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import django

from tests.harness.postgres import (
    PostgresNotFound,
    find_programs,
    temporary_cluster,
    unprivileged_user,
)

SIZES = [100, 10_000, 100_000]
CLIENTS = [1, 8, 32]
Options = argparse.Namespace
Part = Callable[[Options], Any]


def parse() -> Options:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seconds", type=float, default=3, help="for each request and load")
    parser.add_argument("--clients", type=int, nargs="+", default=CLIENTS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--scale", type=float, default=1, help="of growth; 1: a million outcomes")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--calls", type=int, default=200, help="of each peer and operation")
    parser.add_argument("--peer-python", default="", help="of peers that want 3.12 or newer")
    parser.add_argument("--evolutions", type=int, default=7, help="on each database")
    parser.add_argument("--database", nargs="+", choices=("SQLite", "PostgreSQL"),
                        default=["SQLite", "PostgreSQL"])  # fmt: skip
    parser.add_argument("--write", action="store_true", help="keep the figures and draw docs/")
    return parser.parse_args()


def interfaces(options: Options) -> Any:
    """Reading and reporting, beside a bare MCP server and the bare queries."""
    return served(options, "interface_requests", options.clients, options.processes, [])


def lists(options: Options) -> Any:
    """Pages of outcomes out of few and out of many."""
    return served(options, "list_requests", [1], [1], options.sizes)


def served(
    options: Options, requests: str, clients: list[int], processes: list[int], sizes: list[int]
) -> list[dict[str, Any]]:
    """The figures of every request, on each database, with each number of processes and clients."""
    from benchmarks import operations  # noqa: PLC0415 - needs the settings
    from benchmarks.mcp_load import server  # noqa: PLC0415 - likewise

    found = []
    for database in options.database:
        for count in processes:
            with url_of(database) as url, server(count, url, lists=sizes) as where:
                asked = getattr(operations, requests)(where)
                operations.measure(where, asked, 1, 0.5 * operations.ROUNDS)  # warm
                for load in clients:
                    taken = operations.measure(where, asked, load, options.seconds)
                    about = {"database": database, "processes": count, "clients": load}
                    found += [about | {"request": name} | each for name, each in taken.items()]
                    for row in found[-len(taken) :]:
                        print(json.dumps(row), flush=True)
    return found


def url_of(database: str) -> Any:
    if database == "PostgreSQL":
        return temporary_cluster()
    return nullcontext("")


def peers(options: Options) -> Any:
    """Ours beside those that can be installed from a registry."""
    return importlib.import_module("benchmarks.peers").measure(options.calls, options.peer_python)


def overhead(options: Options) -> Any:
    """One evolution at a time, on each database."""
    measure = importlib.import_module("benchmarks.overhead").measure
    found = []
    for database in options.database:
        with url_of(database) as url:
            found.append({"database": database} | measure(options.evolutions, url))
    return found


def footprint(_options: Options) -> Any:
    return importlib.import_module("benchmarks.footprint").measure()


def growth(options: Options) -> Any:
    """Each list, page and call at N rows and at N/100, in a process and database of its own."""
    from benchmarks.mcp_load import environment_of  # noqa: PLC0415 - as in served()

    found = []
    for database in options.database:
        with url_of(database) as url, tempfile.TemporaryDirectory(prefix="ace-growth-") as folder:
            command = [sys.executable, "-m", "benchmarks.growth", str(options.scale)]
            environment = environment_of(folder, url)
            printed = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
            rows = map(json.loads, printed.stdout.splitlines())
            found += [{"database": database} | row for row in rows]
    return found


PARTS: dict[str, Part] = {
    part.__name__: part for part in (interfaces, lists, growth, peers, overhead, footprint)
}


def main() -> int:
    """0 when every part was measured and no call failed."""
    options = parse()
    if "PostgreSQL" in options.database and (why := no_postgres()):
        print(f"PostgreSQL is not measured: {why}.")
        options.database.remove("PostgreSQL")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
    django.setup()
    results: dict[str, Any] = {}
    for name in options.parts:
        print(f"{name} …", flush=True)
        try:
            results[name] = PARTS[name](options)
        except Exception as error:  # noqa: BLE001 - the minutes of the other parts are not lost
            results.setdefault("broken", []).append(f"{name}: {type(error).__name__}: {error}")
            traceback.print_exc()
            continue
        if name not in {"interfaces", "lists"}:
            print(json.dumps(results[name]), flush=True)
    report = importlib.import_module("benchmarks.report")
    print("\n".join(report.sections(results)))
    if options.write:
        report.write(results)
    return int(bool(report.failures(results)))


def no_postgres() -> str:
    """Why PostgreSQL cannot run here, or ""."""
    try:
        find_programs()
        unprivileged_user()
    except PostgresNotFound as error:
        return str(error)
    return ""


if __name__ == "__main__":
    sys.exit(main())
