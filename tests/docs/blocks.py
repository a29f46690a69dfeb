"""The commands and programs of README, docs and examples, and how each says it was tried.

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
APPS = ("accounts", "billing", "config", "core", "evolution", "mcp_bridge", "playbooks")
# What somebody would run, and what is only looked at: a block of any other language is refused.
RUNNABLE = {"sh", "python"}
SHOWN = {"", "json", "toml", "yaml"}
FENCE = re.compile(r"^ *(`{3,}|~{3,})\s*(\S*).*$")
INLINE = re.compile(r"`([^`\n]+)`")
MARK = re.compile(r"^ *<!-- (run|tested: ?(\S+)|not run: ?(.+?)) -->\s*$")


@dataclass(frozen=True)
class Block:
    """`mark` is the comment's text, or nothing; `line` is where the block begins."""

    language: str
    file: str
    line: int
    mark: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def documents() -> list[Path]:
    folders = (ROOT / "docs", ROOT / "examples", ROOT / "client")
    found = (path for folder in folders for path in sorted(folder.rglob("*.md")))
    return [ROOT / "README.md", *found]


def all_blocks() -> list[Block]:
    """In the order of the files and of their lines; but those of generated documents."""
    return [block for path in documents() for block in _blocks(path)]


def commands() -> set[str]:
    """What stands in backticks on a line or in a shell block, in every document."""
    lines = {block.text for block in all_blocks() if block.language == "sh"}
    return lines | {text for path in documents() for text in INLINE.findall(path.read_text())}


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
            if inner.strip().startswith(fence[1]):
                break
            body.append(inner)
        mark = MARK.match(before)
        yield Block(fence[2], name, number, mark[1] if mark else "", "\n".join(body))
        before = ""
