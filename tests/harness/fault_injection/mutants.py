"""Faults seeded on purpose: a harness that does not find them proves nothing.

`python -m tests.harness.fault_injection mutants` runs a short campaign for each; all must be found.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from django.core.management import call_command
from django.db import connection
from psycopg import sql

from tests.harness.fault_injection import seeded_bugs

AT_ONCE = 2
CLONING = threading.Lock()


@dataclass(frozen=True)
class Mutant:
    """`seed` breaks this process and its children; `kills` and `pauses` are what finds it."""

    says: str
    seed: Callable[[], None]
    kills: int = 90
    pauses: int = 0


MUTANTS: dict[str, Mutant] = {
    each.__name__: Mutant(" ".join((each.__doc__ or "").split()), each, kills, pauses)
    for each, kills, pauses in (
        (seeded_bugs.no_fence, 0, 24),
        (seeded_bugs.bind_again, 120, 0),
        (seeded_bugs.no_sweeper, 60, 0),
        (seeded_bugs.split_publish, 120, 0),
        (seeded_bugs.no_transaction, 120, 0),
        (seeded_bugs.early_processed, 60, 0),
        (seeded_bugs.lease_by_own_clock, 60, 0),
        (seeded_bugs.acknowledge_first, 60, 0),
        (seeded_bugs.no_idempotency, 60, 0),
        (seeded_bugs.keep_after_failure, 60, 0),
        (seeded_bugs.votes_without_identity, 60, 0),
        (seeded_bugs.meter_afterwards, 60, 0),
        (seeded_bugs.no_checkpoints, 90, 0),
        (seeded_bugs.forget_to_settle, 30, 0),
    )
}


def seed(name: str) -> None:
    """Break this process so; its children inherit it."""
    MUTANTS[name].seed()
    world: Any = importlib.import_module("tests.harness.fault_injection.world")
    make = world.make_world

    def made(count: int) -> Any:
        found = make(count)
        for change in seeded_bugs.AFTER_MIGRATE:
            change()
        connection.close()
        return found

    world.make_world = made


def run(options: Any) -> int:
    """A short campaign for each mutant, two at a time; 0 when all were found."""
    began = time.monotonic()
    names = options.mutant.split(",") if options.mutant else list(MUTANTS)
    call_command("migrate", verbosity=0)
    connection.close()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = dict(zip(names, pool.map(_hunt, names), strict=True))
    verdict = {
        "part": "mutants",
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "found": sum(bool(by) for by in found.values()),
        "of": len(found),
        "seconds": round(time.monotonic() - began, 1),
        "by": found,
    }
    print(json.dumps(verdict, indent=1))
    return 0 if all(found.values()) else 1


def _hunt(name: str) -> list[str]:
    """What a campaign of its own on a database of its own has found."""
    mutant = MUTANTS[name]
    part, count = ("pauses", mutant.pauses) if mutant.pauses else ("kills", mutant.kills)
    command = [sys.executable, "-m", "tests.harness.fault_injection", part, "--count", str(count)]
    command += ["--mutant", name, "--lanes", "6", "--seconds", "90", "--existing", f"m_{name}"]
    with CLONING:
        _clone(str(connection.settings_dict["NAME"]), f"m_{name}")
    with tempfile.TemporaryFile("w+") as output:
        subprocess.run(command, stdout=output, check=False)
        output.seek(0)
        try:
            wrong = json.load(output)["wrong"]
        except ValueError:
            return []
    # A busy machine is late by itself.
    return [str(line)[:300] for line in wrong if "takeover" not in line]


def _clone(base: str, name: str) -> None:
    """A copy of the migrated database; its server lets nobody be connected to the original."""
    server = urlsplit(os.environ["TEST_DATABASE_URL"])._replace(path="/postgres")
    with psycopg.connect(urlunsplit(server), autocommit=True) as admin:
        admin.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*map(sql.Identifier, (name, base)))
        )
