"""Every management command of ours has a test that calls it by name."""

import re

import pytest
from django.conf import settings

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
    called = re.search(rf'(call_command\(|, )\s*"{command}"', tests)
    assert called, f"write a test that calls `manage.py {command}`"
