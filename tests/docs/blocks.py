"""The shell blocks of README and docs, and what the comment before each says of it.

<!-- run -->                               tests/docs/test_blocks.py runs it at a live platform
<!-- tested: tests/a/test_b.py::test_c --> that test does what the block does
<!-- not run: why -->                      nobody has run it here
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

ROOT = Path(settings.BASE_DIR)
SHELL = {"sh", "shell", "bash", "console"}
FENCE = re.compile(r"^ *```(\w*)\s*$")
MARK = re.compile(r"^ *<!-- (run|tested: ?(\S+)|not run: ?(.+?)) -->\s*$")
# Every block of these is written by a program and held to it by a test.
GENERATED = {"docs/CLIENTS.md": "tests/mcp_bridge/test_clients.py"}


@dataclass(frozen=True)
class Block:
    """`mark` is the comment's text, or nothing; `line` is where the block begins."""

    file: str
    line: int
    mark: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def shell_blocks() -> list[Block]:
    """In the order of the files and of their lines."""
    return [block for path in documents() for block in _blocks(path)]


def _blocks(path: Path) -> Iterator[Block]:
    name, before = str(path.relative_to(ROOT)), ""
    lines = iter(enumerate(path.read_text().splitlines(), start=1))
    for number, line in lines:
        fence = FENCE.match(line)
        if not fence:
            before = line if line.strip() else before
            continue
        body = []
        for _, inner in lines:
            if FENCE.match(inner):
                break
            body.append(inner)
        mark = MARK.match(before)
        if fence[1] in SHELL and name not in GENERATED:
            yield Block(name, number, mark[1] if mark else "", "\n".join(body))
        before = ""
