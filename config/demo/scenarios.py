"""The scenarios of the demo account: three playbooks, their tasks and lessons (scenarios.toml)."""

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Scenario:
    """One playbook, cloned from `starter`; agents report `lessons` in this order."""

    starter: str
    name: str
    tasks: list[str]
    lessons: list[str]
    mistakes: list[str]
    risky: str
    """A lesson that waits for a person."""


CLIENTS = ("claude-code 2.1.197", "codex 0.9.2", "cursor 1.7")
KEYS = ("laptop", "nightly build")
_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
SCENARIOS = tuple(Scenario(**row) for row in _FILE["scenario"])
