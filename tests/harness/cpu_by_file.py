"""Which files of tests cost most CPU: the run's last lines name them, so that growth is seen.

Each process of pytest adds up its own and its ended children's seconds for each file, and leaves
the sums in the folder TEST_CPU_FOLDER at its end.
"""

import json
import os
import resource
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

FOLDER = "TEST_CPU_FOLDER"


def install(config: pytest.Config) -> None:
    """Measure, if somebody asks for it by the environment."""
    if folder := os.environ.get(FOLDER):
        config.pluginmanager.register(CpuByFile(Path(folder)))


class CpuByFile:
    """The seconds of this process, by file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seconds: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        before = used()
        result = yield
        self.seconds[item.nodeid.partition("::")[0]] += used() - before
        return result

    def pytest_sessionfinish(self) -> None:
        file = self.folder / f"{os.getpid()}.cpu.json"
        file.write_text(json.dumps(self.seconds))


def used() -> float:
    """Seconds of CPU of this process and of its children that ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def dearest(folder: Path, count: int = 15) -> Iterator[str]:
    """A line for each of the files that cost most, over all processes."""
    found: dict[str, float] = defaultdict(float)
    for file in folder.glob("*.cpu.json"):
        for name, seconds in json.loads(file.read_text()).items():
            found[name] += seconds
    for name, seconds in sorted(found.items(), key=lambda item: -item[1])[:count]:
        yield f"{seconds:6.1f} s CPU  {name}"
