"""`.env.example` names every variable that is read, and no other."""

import re

from django.conf import settings

READERS = ("config/settings/base.py", "mcp_bridge/management/commands/run_mcp.py")
READ = re.compile(r'(?:env\.\w+|environ\.get)\(\s*"([A-Z_]+)"')
DOCUMENTED = re.compile(r"^#?([A-Z_]+)=", re.MULTILINE)


def variables_read() -> set[str]:
    texts = [(settings.BASE_DIR / reader).read_text() for reader in READERS]
    return {name for text in texts for name in READ.findall(text)}


def variables_documented() -> list[str]:
    return DOCUMENTED.findall((settings.BASE_DIR / ".env.example").read_text())


def test_every_variable_that_is_read_is_documented() -> None:
    assert variables_read() - set(variables_documented()) == set()


def test_every_documented_variable_is_read() -> None:
    assert set(variables_documented()) - variables_read() == set()


def test_no_variable_is_documented_twice() -> None:
    names = variables_documented()
    assert sorted(names) == sorted(set(names))
