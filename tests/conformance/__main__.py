"""`make conformance`: the official suite, both revisions, without and with fixtures; and clients.

As it is, our server may fail only what expected-*.yaml lists, each with its reason; with the
suite's own fixtures added to it, nothing. Then the Inspector's command line and the clients of the
official SDKs. Exit code 0 means just that; `python -m tests.conformance suite|inspector|sdks` runs
one part. Not part of `make test`: it gets programs from the registries of npm and Python.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import django

# The suite needs Node 22; npm can bring one.
PACKAGES = ("--package=node@24", "--package=@modelcontextprotocol/conformance@0.2.0-alpha.12")
REVISIONS = ("2026-07-28", "2025-11-25")
HERE = Path(__file__).parent


def main(part: str) -> int:
    """Print the result of each part; 1 for a failure that no list expects."""
    npx = shutil.which("npx")
    if npx is None:
        print("npx was not found: install Node and npm.")
        return 2
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
    django.setup()
    from django.db import connection  # noqa: PLC0415 - needs the settings

    from tests.conformance.inspector import inspect_all  # noqa: PLC0415 - likewise
    from tests.conformance.sdks import try_all  # noqa: PLC0415 - likewise
    from tests.conformance.serving import prepare, served_plain  # noqa: PLC0415 - likewise

    token = prepare()
    bad = run_suite(npx, token) if part in {"suite", "all"} else []
    with served_plain() as url:
        if part in {"inspector", "all"}:
            bad += inspect_all(url, token, str(connection.settings_dict["NAME"]))
        if part in {"sdks", "all"}:
            bad += try_all(url, token)
    print("\nFailed:" if bad else "\nNo failure that is not expected.", *bad, sep="\n  ")
    return 1 if bad else 0


def run_suite(npx: str, token: str) -> list[str]:
    """The runs that failed."""
    from tests.conformance.serving import served  # noqa: PLC0415 - needs the settings

    bad = []
    for fixtures in (False, True):
        with served(token, fixtures=fixtures) as url:
            for revision in REVISIONS:
                name = f"{revision}, {'with fixtures' if fixtures else 'as it is'}"
                print(f"\n===== {name}", flush=True)
                if _run(npx, url, revision, fixtures=fixtures):
                    bad.append(name)
    return bad


def _run(npx: str, url: str, revision: str, *, fixtures: bool) -> int:
    command = [npx, "--yes", *PACKAGES, "--", "conformance", "server"]
    command += ["--url", url, "--requirements", revision]
    if not fixtures:
        command += ["--expected-failures", str(HERE / f"expected-{revision}.yaml")]
    with tempfile.TemporaryDirectory() as results:
        return subprocess.run([*command, "--output-dir", results], check=False).returncode


if __name__ == "__main__":
    sys.exit(main((sys.argv[1:] or ["all"])[0]))
