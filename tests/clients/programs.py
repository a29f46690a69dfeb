"""The real programs from the npm registry, each in a home folder of its own."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mcp_bridge.clients import BY_SLUG

PACKAGES = {
    "claude-code": "@anthropic-ai/claude-code@2.1.197",
    "codex": "@openai/codex@0.169.0",
    "gemini-cli": "@google/gemini-cli@0.61.0",
    "opencode": "opencode-ai@1.18.33",
    "mcp-remote": "mcp-remote@0.15.1",
}
NODE = "node@24"
QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
    "NO_PROXY": "127.0.0.1,localhost",
}


@dataclass(frozen=True)
class Ran:
    """How a program ended."""

    code: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"exit code {self.code}\n{self.out[-3000:]}\n{self.err[-3000:]}"


@dataclass
class Person:
    """Somebody with an empty home, a folder to work in, and the variables of the docs."""

    bin: Path
    home: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def work(self) -> Path:
        folder = self.home / "work"
        folder.mkdir(exist_ok=True)
        return folder

    def run(self, *command: str, given: str | None = None, seconds: float = 120) -> Ran:
        """Run a program as this person does."""
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            command,
            env={"PATH": path, "HOME": str(self.home), **QUIET, **self.variables},
            cwd=self.work,
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def follow_the_docs(self, slug: str, url: str) -> None:
        """Do what the connect page says for a client with a key."""
        snippet = BY_SLUG[slug].snippets["key"]
        if snippet.format == "sh":
            ran = self.run("sh", "-ec", snippet.fill(url))
            assert ran.code == 0, ran
            return
        file = self.home / snippet.place.removeprefix("~/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(snippet.fill(url))

    def files_with(self, text: str) -> list[Path]:
        """The files below the home that hold `text`: where a key would have been left."""
        files = (file for file in self.home.rglob("*") if file.is_file())
        return [file for file in files if text.encode() in file.read_bytes()]


def install(folder: Path) -> Path:
    """The folder with the programs, installed there unless they are there already."""
    folder.mkdir(parents=True, exist_ok=True)
    npm = shutil.which("npm")
    assert npm, "npm is needed: the programs come from its registry"
    listed = folder / "installed"
    wanted = " ".join([NODE, *PACKAGES.values()])
    if not listed.exists() or listed.read_text() != wanted:
        subprocess.run([npm, "init", "-y"], cwd=folder, check=True, capture_output=True)
        quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
        command = [npm, "install", *quiet, NODE, *PACKAGES.values()]
        subprocess.run(command, cwd=folder, check=True)
        listed.write_text(wanted)
    return folder / "node_modules" / ".bin"


def install_sdks(folder: Path) -> Path:
    """The Python of an environment with the agent SDKs of sdks.txt."""
    wanted, python = Path(__file__).with_name("sdks.txt"), folder / "bin" / "python"
    listed = folder / "installed.txt"
    if not listed.exists() or listed.read_text() != wanted.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        quiet = ["--quiet", "--disable-pip-version-check"]
        subprocess.run([python, "-m", "pip", "install", *quiet, "-r", wanted], check=True)
        listed.write_text(wanted.read_text())
    return python


@contextmanager
def new_person(programs: Path, **variables: str) -> Iterator[Person]:
    """A person who is gone, with everything in the home, when the block ends."""
    with tempfile.TemporaryDirectory(prefix="ace-person-", ignore_cleanup_errors=True) as home:
        yield Person(programs, Path(home), dict(variables))


def versions() -> Mapping[str, str]:
    """What is installed, by client."""
    return {name: package.rpartition("@")[2] for name, package in PACKAGES.items()}
