"""Keeps what a package would import if it found it, and nothing here uses, out of every process."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Meanwhile these are not found, unless they were imported before."""
    hidden = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: an ImportError
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
