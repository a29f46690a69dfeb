"""The whole platform as a user starts it: `manage.py run` in a process of its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from tests.harness.migrated_template import TEMPLATE
from tests.harness.postgres import free_port, fresh_database

EMAIL = "first@example.org"
PASSWORD = "a long first password"
START_SECONDS, STOP_SECONDS = 180.0, 60.0
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "VIRTUAL_ENV")


def live_settings(**changed: object) -> dict[str, str]:
    """The environment of a process that runs with these settings changed."""
    return {
        "DJANGO_SETTINGS_MODULE": "tests.harness.live_settings",
        "TEST_SETTINGS": json.dumps(changed),
    }


class Platform:
    """A started platform: `url`, the first login's `key`, and everything it printed so far."""

    def __init__(
        self, env: dict[str, str], key: str, command: Sequence[str] = (), folder: Path | None = None
    ) -> None:
        self.env, self.key = env, key
        self.url = ""
        self.lines: list[str] = []
        self._ready = threading.Event()
        self.process = subprocess.Popen(
            command or [sys.executable, str(settings.BASE_DIR / "manage.py"), "run"],
            env=env,
            cwd=folder or settings.BASE_DIR,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if line.startswith("ready http"):
                self.url = line.split()[1]
                self._ready.set()
        self._ready.set()

    def wait(self) -> None:
        """Until it serves; the printed lines are the message when it does not."""
        self._ready.wait(START_SECONDS)
        assert self.url, "".join(self.lines)

    def stop(self) -> int:
        """End it as Ctrl-C does; the exit code. One that does not end is killed, and fails."""
        self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        self._reader.join(5)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


@contextmanager
def running_platform(
    key: str,
    *,
    template: str = TEMPLATE,
    command: Sequence[str] = (),
    source: str = "",
    **extra: str,
) -> Iterator[Platform]:
    """A platform on its own database: SQLite, or one made beside TEST_DATABASE_URL's.

    It begins as a copy of `template`, or empty without one, as at a first start. `command` starts
    it in `source`, another clone.
    """
    with tempfile.TemporaryDirectory() as folder, own_database(template) as database_url:
        env = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ} | {
            "ACE_DATA_DIR": str(Path(folder) / "var"),
            "PORT": str(free_port()),
            "ACE_BOOTSTRAP_EMAIL": EMAIL,
            "ACE_BOOTSTRAP_PASSWORD": PASSWORD,
            "ACE_BOOTSTRAP_API_KEY": key,
            **extra,
        }
        if template and not database_url:
            Path(env["ACE_DATA_DIR"]).mkdir()
            shutil.copyfile(template, Path(env["ACE_DATA_DIR"]) / "ace.sqlite3")
        if database_url:
            names = ("SECRET_KEY", "JWT_SECRET_KEY", "FIELD_ENCRYPTION_KEYS")
            secrets = {name: name[0] * 40 for name in names}
            env |= secrets | {"DATABASE_URL": database_url, "HTTPS": "false"}
        platform = Platform(env, key, command, Path(source) if source else None)
        try:
            platform.wait()
            yield platform
        finally:
            code = platform.stop()
            print(f"the platform ended with {code}:", *platform.lines, sep="\n")


@contextmanager
def own_database(template: str = "") -> Iterator[str]:
    """The URL of a new PostgreSQL database, or nothing where the suite runs on SQLite."""
    server = os.environ.get("TEST_DATABASE_URL", "")
    if not server:
        yield ""
        return
    with fresh_database(server, template) as url:
        yield url
