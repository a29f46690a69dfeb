"""How long a function may be: one that does not fit on a screen does more than one thing."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAX_FUNCTION_LINES = 50
EXCLUDED = {"var", "staticfiles", "node_modules"}


def sources() -> Iterator[Path]:
    for folder in ROOT.iterdir():
        if folder.is_dir() and not folder.name.startswith(".") and folder.name not in EXCLUDED:
            yield from folder.rglob("*.py")


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Without the expressions in them, which are most of a tree and hold no function."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, name, ()):
            yield node
            yield from statements(node)


def long_functions(path: Path) -> Iterator[str]:
    for node in statements(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name} has {lines} lines"


def test_no_function_is_longer_than_a_screen() -> None:
    assert [long for path in sources() for long in long_functions(path)] == []
