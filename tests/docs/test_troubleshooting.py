"""docs/TROUBLESHOOTING.md quotes the texts of the code verbatim."""

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


def texts_in(tree: ast.AST) -> Iterator[str]:
    """The string literals of a file, with a gap for each placeholder."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (v.value if isinstance(v, ast.Constant) else GAP for v in node.values)
            yield "".join(map(str, parts))


@cache
def all_texts() -> str:
    files = [path for app in APPS for path in sorted((ROOT / app).rglob("*.py"))]
    files.append(ROOT / "manage.py")
    return "\n".join(
        " ".join(text.split()) for f in files for text in texts_in(ast.parse(f.read_text()))
    )


def test_there_are_over_forty_texts() -> None:
    assert len(QUOTED) > 40
    assert len(set(QUOTED)) == len(QUOTED)


@pytest.mark.parametrize("text", QUOTED)
def test_each_quoted_text_exists_in_the_code(text: str) -> None:
    """`… ` may stand for words that the code writes in backticks, which a table cannot quote."""
    pieces = [re.escape(piece.strip()) for piece in text.split(GAP)]
    gap = r"\s?[^\n]{0,60}?\s?"
    assert re.search(gap.join(pieces), all_texts()), text
