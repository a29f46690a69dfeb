"""The clients of the official SDKs against our server: Python 1.x and 2.x, TypeScript 1.x and 2.x.

Each lists, reads by name and reports, in the revision that it speaks.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).parent
PYTHON_1 = "mcp==1.30.0"
TYPESCRIPT = {
    "sdk1": "@modelcontextprotocol/sdk@1.32.2",
    "sdk2": "@modelcontextprotocol/client@2.3.1",
}


def try_all(url: str, token: str) -> list[str]:
    """The failures of all SDKs; the output of each is printed."""
    environment = os.environ | {"ACE_URL": url, "ACE_API_KEY": token}
    with tempfile.TemporaryDirectory() as folder:
        ways = {
            "Python SDK 2.x": [sys.executable, str(HERE / "sdk_python2.py")],
            f"Python SDK {PYTHON_1}": _python_1(Path(folder)),
            **{package: _typescript(Path(folder), name) for name, package in TYPESCRIPT.items()},
        }
        found = {name: _run(name, command, environment) for name, command in ways.items()}
    return [problem for problem in found.values() if problem]


def _python_1(folder: Path) -> list[str]:
    venv.create(folder / "python1", with_pip=True)
    python = str(folder / "python1" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", PYTHON_1], check=True)
    return [python, str(HERE / "sdk_python1.py")]


def _typescript(folder: Path, name: str) -> list[str]:
    place, npm = folder / name, shutil.which("npm") or "npm"
    place.mkdir()
    packages = ["node@24", TYPESCRIPT[name]]
    (place / "package.json").write_text('{"type": "module"}')
    subprocess.run([npm, "install", "--silent", *packages], cwd=place, check=True)
    script = place / "client.mjs"
    shutil.copy(HERE / f"{name}.mjs", script)
    return [str(place / "node_modules" / ".bin" / "node"), str(script)]


def _run(name: str, command: list[str], environment: dict[str, str]) -> str:
    """Empty on success, else the output."""
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    print(f"  {name}: {done.stdout.strip() or done.stderr.strip()[-300:]}", flush=True)
    output = json.loads(done.stdout) if done.returncode == 0 else {}
    good = output.get("tools") == 11 and output.get("status") == "recorded" and output.get("advice")
    return "" if good else f"{name}: exit {done.returncode}"
