"""The commands that the README of the todo agent says."""

import re
import shlex
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def readme_commands() -> list[list[str]]:
    """The arguments behind each `python -m todo_agent`."""
    text = (EXAMPLES / "todo_agent" / "README.md").read_text()
    lines = re.findall(r"^python -m todo_agent (.*)$", text, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]
