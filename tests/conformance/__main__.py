"""`python -m tests.conformance`: the official suite, both revisions, without and with fixtures.

As it is, our server may fail only what expected-*.yaml lists, each with its reason; with the
suite's own fixtures added to it, nothing. Exit code 0 means just that. Not part of `make test`: it
gets the suite from the npm registry.
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


def main() -> int:
    """Print what the suite says of each run; 1 when something failed that no list expects."""
    npx = shutil.which("npx")
    if npx is None:
        print("npx was not found: install Node and npm.")
        return 2
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings_test")
    django.setup()
    from tests.conformance.serving import prepare, served  # noqa: PLC0415 - needs the settings

    token, bad = prepare(), []
    for fixtures in (False, True):
        with served(token, fixtures=fixtures) as url:
            for revision in REVISIONS:
                name = f"{revision}, {'with fixtures' if fixtures else 'as it is'}"
                print(f"\n===== {name}", flush=True)
                if _run(npx, url, revision, fixtures=fixtures):
                    bad.append(name)
    print(f"\nFailed: {'; '.join(bad)}" if bad else "\nNo failure that is not expected.")
    return 1 if bad else 0


def _run(npx: str, url: str, revision: str, *, fixtures: bool) -> int:
    command = [npx, "--yes", *PACKAGES, "--", "conformance", "server"]
    command += ["--url", url, "--requirements", revision]
    if not fixtures:
        command += ["--expected-failures", str(HERE / f"expected-{revision}.yaml")]
    with tempfile.TemporaryDirectory() as results:
        return subprocess.run([*command, "--output-dir", results], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
