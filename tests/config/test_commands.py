"""Every management command of ours has a test that calls it by name."""

import re

import pytest
from django.conf import settings

from config.management.command_line import CommandLine, our_commands

APPS = ("accounts", "billing", "playbooks", "evolution", "mcp_bridge", "config")
COMMANDS = sorted(
    path.stem
    for app in APPS
    for path in (settings.BASE_DIR / app / "management" / "commands").glob("[a-z]*.py")
)


@pytest.fixture(scope="module")
def tests() -> str:
    found = (settings.BASE_DIR / "tests").rglob("*.py")
    return "\n".join(path.read_text() for path in found if path.name != "test_commands.py")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_has_a_test(tests: str, command: str) -> None:
    called = re.search(rf'(call_command\(|\brun\(|, )\s*"{command}"', tests)
    assert called, f"write a test that calls `manage.py {command}`"


def test_the_help_lists_our_commands_in_one_group_with_one_line_each() -> None:
    text = CommandLine(["manage.py"]).main_help_text()
    ours, others = text.split("[ace]\n")[1].split("\n\n")
    lines = [line.split(maxsplit=1) for line in ours.splitlines()]
    assert [name for name, _ in lines] == COMMANDS
    assert {"createsuperuser", "dbshell"} <= set(others.split())


def test_the_line_of_a_command_fits_a_terminal() -> None:
    assert all(10 < len(line) <= 78 for line in our_commands().values())
