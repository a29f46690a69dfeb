"""docs/TROUBLESHOOTING.md quotes what the code says, letter for letter."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.docs.blocks import APPS, ROOT

QUOTED = re.findall(
    r"^\| `([^`]+)` \|", (ROOT / "docs" / "TROUBLESHOOTING.md").read_text(), re.MULTILINE
)
GAP = "…"


def said_by(tree: ast.AST) -> Iterator[str]:
    """Every text of a file; what is filled in is a gap."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (v.value if isinstance(v, ast.Constant) else GAP for v in node.values)
            yield "".join(map(str, parts))


@cache
def everything_said() -> str:
    files = [path for app in APPS for path in sorted((ROOT / app).rglob("*.py"))]
    files.append(ROOT / "manage.py")
    return "\n".join(
        " ".join(text.split()) for f in files for text in said_by(ast.parse(f.read_text()))
    )


def test_there_is_much_to_look_up() -> None:
    assert len(QUOTED) > 40
    assert len(set(QUOTED)) == len(QUOTED)


@pytest.mark.parametrize("text", QUOTED)
def test_each_quoted_text_is_one_that_the_code_says(text: str) -> None:
    """`… ` may stand for words that the code writes in backticks, which a table cannot quote."""
    pieces = [re.escape(piece.strip()) for piece in text.split(GAP)]
    gap = r"\s?[^\n]{0,60}?\s?"
    assert re.search(gap.join(pieces), everything_said()), text
