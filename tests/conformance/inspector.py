"""The MCP Inspector's command line against our server: both revisions, both transports, all tools.

Its exit codes: 0 for a result, 5 where a tool refuses or is not there, 1 for the protocol's errors.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

PACKAGES = ("node@24", "@modelcontextprotocol/inspector@2.12.0")
NOTHING = "00000000-0000-4000-8000-000000000000"


@dataclass
class Inspector:
    """One transport and revision; it collects the failures. `bin` has the programs."""

    bin: Path
    era: str
    target: list[str]
    options: list[str]
    problems: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.era}, {'stdio' if self.target else 'HTTP'}"

    def run(self, expected: int, method: str, *arguments: str) -> Any:
        """The result, or {} where an error was expected."""
        # Not npx, which looks for the packages at each of the 52 calls: 0.5 s of CPU.
        command = [str(self.bin / "mcp-inspector"), "--cli", "--quiet"]
        # A busy machine takes its time to start a server on stdio.
        command += ["--connect-timeout", "90000", "--protocol-era", self.era, *self.options]
        command += ["--method", method, *arguments]
        command += self.target
        done = subprocess.run(
            command,
            env=os.environ | {"PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        print(f"  {method} {' '.join(arguments[:4])[:70]}: exit {done.returncode}", flush=True)
        if done.returncode != expected:
            message = done.stderr.strip().splitlines()[-1:]
            self.problems.append(f"{method} {arguments}: exit {done.returncode}, {message}")
        return json.loads(done.stdout) if expected == done.returncode == 0 else {}

    def call(self, tool: str, *, expected: int = 0, **arguments: Any) -> Any:
        given = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        return self.run(expected, "tools/call", *given).get("structuredContent", {})


def ways(folder: Path, url: str, token: str, database: str) -> Iterator[Inspector]:
    """Each revision over HTTP and over stdio."""
    python = [sys.executable, "-m", "tests.harness.manage_command", "run_mcp"]
    inside = {
        "ACE_TEST_DATABASE": database, "ACE_API_KEY": token, "PYTHONPATH": str(settings.BASE_DIR),
        "DJANGO_SETTINGS_MODULE": os.environ["DJANGO_SETTINGS_MODULE"],
    }  # fmt: skip
    given = [part for name, value in inside.items() for part in ("-e", f"{name}={value}")]
    header = ["--server-url", url, "--transport", "http"]
    header += ["--header", f"Authorization: Bearer {token}"]
    for era in ("modern", "legacy"):
        yield Inspector(folder, era, [], header)
        yield Inspector(folder, era, ["--", *python], given)


def inspect_everything(inspector: Inspector) -> None:
    """List everything and call each tool once; then calls that must fail."""
    listed = inspector.run(0, "tools/list", "--strict").get("tools", [])
    made = inspector.call("create_playbook", name=f"Inspected, {inspector.name}")
    pk = made.get("id", NOTHING)
    inspector.call("list_playbooks", limit=1)
    read = inspector.call("get_playbook", playbook_id=pk)
    serving = read.get("serving_id", "")
    report: dict[str, Any] = {"task_description": "Inspect", "outcome": "success"}
    inspector.call("report_outcome", playbook_id=pk, serving_id=serving, **report)
    job = inspector.call("trigger_evolution", playbook_id=pk).get("job_id", NOTHING)
    inspector.call("get_evolution_status", job_id=job)
    inspector.call("list_evolutions", playbook_id=pk)
    inspector.call("list_versions", playbook_id=pk)
    inspector.call("clone_playbook", playbook_id=pk)
    # Version 1 is the newest: what has this text already is refused.
    inspector.call("rollback_playbook", playbook_id=pk, version=1, expected=5)
    if len(listed) != 11:
        inspector.problems.append(f"{len(listed)} tools are listed")
    refuse_everything(inspector)


def refuse_everything(inspector: Inspector) -> None:
    inspector.call("get_playbook", playbook_id=NOTHING, expected=5)
    inspector.call("no_such_tool", expected=5)


def inspect_all(url: str, token: str, database: str) -> list[str]:
    """The failures of all transports and revisions."""
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        npm = shutil.which("npm") or "npm"
        subprocess.run([npm, "install", "--silent", *PACKAGES], cwd=folder, check=True)
        programs = Path(folder) / "node_modules" / ".bin"
        for inspector in ways(programs, url, token, database):
            print(f"\n===== Inspector, {inspector.name}")
            inspect_everything(inspector)
            problems += inspector.problems
    return problems
