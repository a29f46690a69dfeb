"""Finds a Python for peers that need a newer one than ours, and makes their environments."""

import glob
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

NEWEST_FIRST = ("3.13", "3.12", "3.14")
"""3.14 last: some of the peers' dependencies have no wheels for it."""


class NoPython(Exception):
    """There is none that runs here; the message says what to do."""


def find_python(chosen: str = "") -> str:
    """The chosen interpreter, else one on PATH, of uv or of pyenv; raises NoPython."""
    for found in [chosen] if chosen else candidates():
        if is_new(found):
            return found
    raise NoPython("no Python 3.12 or newer was found: name one by --peer-python")


def candidates() -> Iterator[str]:
    """Whatever may be one; a pyenv shim of that name may stand for nothing."""
    for version in NEWEST_FIRST:
        yield shutil.which(f"python{version}") or ""
    for version in NEWEST_FIRST:
        yield said_by("uv", "python", "find", "--managed-python", "--no-python-downloads", version)
    if root := said_by("pyenv", "root"):
        for version in NEWEST_FIRST:
            yield from sorted(glob.glob(f"{root}/versions/{version}*/bin/python3"))


def said_by(*command: str) -> str:
    """The output of a program that may not be there or may fail."""
    if shutil.which(command[0]) is None:
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def is_new(python: str) -> bool:
    """Whether it runs at all and is 3.12 or newer."""
    test = "import sys; sys.exit(sys.version_info < (3, 12))"
    if not shutil.which(python):
        return False
    return subprocess.run([python, "-c", test], capture_output=True, check=False).returncode == 0


def environment_with(package: str, python: str, folder: Path) -> Path:
    """The `bin` of a fresh virtual environment with the package from PyPI; by uv where it is."""
    programs = folder / "bin"
    if shutil.which("uv"):
        run("uv", "venv", "-q", "-p", python, str(folder))
        run("uv", "pip", "install", "-q", "--python", str(programs / "python"), package)
    else:
        run(python, "-m", "venv", str(folder))
        run(str(programs / "python"), "-m", "pip", "install", "-q", package)
    return programs


def run(*command: str) -> None:
    subprocess.run(command, check=True)
