"""How long a file and a function may be: what is longer does more than one thing."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_OF_A_FILE, MOST_OF_A_FUNCTION = 300, 50
LEFT_OUT = {"var", "staticfiles", "node_modules"}


def sources() -> Iterator[Path]:
    for folder in ROOT.iterdir():
        if folder.is_dir() and not folder.name.startswith(".") and folder.name not in LEFT_OUT:
            yield from folder.rglob("*.py")


def long_functions(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            if lines > MOST_OF_A_FUNCTION:
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name} has {lines} lines"


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    long = [
        f"{path.relative_to(ROOT)} has {lines} lines"
        for path in sources()
        if (lines := len(path.read_text().splitlines())) > MOST_OF_A_FILE
    ]
    assert long == []


def test_no_function_is_longer_than_a_screen() -> None:
    assert [long for path in sources() for long in long_functions(path)] == []
