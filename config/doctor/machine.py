"""Checks of Python, the packages and the disk."""

import platform
import re
import shutil
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from django.conf import settings

from config.doctor.findings import Finding, Options, failed, ok, warning

PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
OLDEST, NEWEST = (3, 11), (3, 13)


def check_python(options: Options) -> Finding:
    here = platform.python_version()
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        return failed(here, "Use Python 3.11, 3.12 or 3.13.")
    return ok(here)


def check_packages(options: Options) -> Finding:
    """Installed versions are the pinned ones; pins for other platforms may be missing."""
    lock = Path(settings.BASE_DIR) / "requirements" / "base.txt"
    pins = PINNED.findall(lock.read_text()) if lock.exists() else []
    other = [name for name, wanted in pins if _installed(name) not in {"", wanted}]
    if other:
        some = ", ".join(sorted(other)[:5])
        advice = "Run requirements/install base, or rebuild the image."
        return warning(f"{len(other)} are not the pinned versions ({some})", advice)
    return ok(f"{len(pins)} pinned")


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def check_disk(options: Options) -> Finding:
    """Free space where the platform writes: data, secrets and temporary files."""
    folders = [tempfile.gettempdir()]
    folders += [settings.SECRETS_DIR] if settings.SECRETS_DIR else []
    folders += [str(settings.DATA_DIR)] if settings.LOCAL or settings.EMBEDDED else []
    free = {path: shutil.disk_usage(path).free // 2**20 for path in folders if Path(path).is_dir()}
    least = min(free, key=lambda path: free[path])
    if free[least] < options.min_free_mb:
        return failed(
            f"{free[least]} MB free at {least}",
            f"Free up space: at least {options.min_free_mb} MB (--min-free-mb).",
        )
    return ok(f"{free[least]} MB free")
