"""`mypy .` with a cache that outlives the clone, and without it where that makes mypy fail.

A run that was killed, or two at once, can leave a cache on which mypy ends with an internal error
at every later run; exit code 2 says so. Errors of types are code 1.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

BROKEN = 2
VARIABLE = "MYPY_CACHE_DIR"


def check(command: list[str]) -> int:
    """The command's exit code; when it breaks off, that of a second try from an empty cache."""
    code = subprocess.run(command, check=False).returncode
    cache = os.environ.get(VARIABLE)
    if code != BROKEN or not cache or not Path(cache).exists():
        return code
    print("mypy broke off: once more, from an empty cache.", flush=True)
    shutil.rmtree(cache, ignore_errors=True)
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(check([sys.executable, "-m", "mypy", "."]))
