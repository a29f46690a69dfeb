"""The fault harness: `python -m tests.harness.fault_injection kills --database postgres`.

See docs/engineering/RELIABILITY_REPORT.md for what each part shows and what it showed last.
"""

import argparse
import importlib
import json
import os
import sys
from contextlib import ExitStack

from tests.harness.postgres import temporary_cluster

PARTS = ["kills", "pauses", "mutants", "stops", "idle", "cluster", "outage"]
PARTS += ["starvation", "sqlite_load"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("part", choices=PARTS)
    add("--database", choices=["sqlite", "postgres"], default="postgres")
    add("--count", type=int, default=0, help="how many; 0: what the contract asks for")
    add("--lanes", type=int, default=0, help="playbooks; 0: 16, or 40 to pause workers")
    add("--seconds", type=float, default=570)
    add("--existing", default="", help="the name of a migrated SQLite or PostgreSQL database")
    shares = ["even", "odd", "ninth"]
    add(
        "--share",
        choices=shares,
        default="",
        help="kill only at a half or a sixteenth of the points",
    )
    add("--mutant", default="", help="seed this fault first")
    options = parser.parse_args()
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings.test"
    with ExitStack() as stack:
        if options.database == "postgres" and "TEST_DATABASE_URL" not in os.environ:
            os.environ["TEST_DATABASE_URL"] = stack.enter_context(temporary_cluster())
        if options.database == "sqlite":
            os.environ["TEST_DATABASE_URL"] = ""
        return int(importlib.import_module("tests.harness.fault_injection.runner").run(options))


if __name__ == "__main__":
    print(json.dumps({"started": True}), file=sys.stderr)
    sys.exit(main())
