"""`mypy .` with a cache that outlives the clone; what it finds wrong is found again without one.

After modules were moved or a run was killed, a kept cache can name errors that are none, or break
mypy itself at every later run.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

VARIABLE = "MYPY_CACHE_DIR"


def check(command: list[str]) -> int:
    """The command's exit code; when it fails on a kept cache, that of a try from an empty one."""
    cache = Path(os.environ.get(VARIABLE) or ".mypy_cache")
    if cache.exists():
        if not subprocess.run(command, check=False, capture_output=True).returncode:
            return 0
        print("Checked from an empty cache, as the kept one led to errors.", flush=True)
        shutil.rmtree(cache, ignore_errors=True)
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(check([sys.executable, "-m", "mypy", "."]))
