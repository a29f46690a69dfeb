"""Django's own list of what a production server must have, with the settings of one."""

import os
import subprocess
import sys
from pathlib import Path

from django.conf import settings

CODE = "import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'config.settings.base'; "
CODE += "from django.conf import settings as s; print(*(getattr(s, n) for n in NAMES))"
NAMES = (
    *("SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"),
    *("SESSION_COOKIE_SAMESITE", "SECURE_SSL_REDIRECT", "STAFF_SECOND_FACTOR"),
)


def production(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    names = ("SECRET_KEY", "JWT_SECRET_KEY", "FIELD_ENCRYPTION_KEYS")
    secrets = {name: f"{name}-{os.urandom(32).hex()}" for name in names}
    env = {"DATABASE_URL": "postgres://ace@localhost/ace", "ALLOWED_HOSTS": "ace.example"}
    return subprocess.run(
        [sys.executable, *command],
        cwd=settings.BASE_DIR,
        env=env | secrets | {"PATH": os.environ["PATH"], "ACE_DATA_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_production_server_passes_djangos_deployment_check(tmp_path: Path) -> None:
    ended = production(tmp_path, "manage.py", "check", "--deploy", "--fail-level", "WARNING")
    assert (ended.returncode, ended.stderr.strip()) == (0, "")


def test_a_production_server_binds_its_cookies_to_its_host(tmp_path: Path) -> None:
    code = CODE.replace("NAMES", repr(NAMES))
    ended = production(tmp_path, "-c", code)
    expected = "__Host-sessionid __Host-csrftoken True True Lax True True"
    assert ended.stdout.strip() == expected, ended.stderr
