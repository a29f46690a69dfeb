"""A start with a wrong value stops with one sentence that names what to set."""

import os
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.functional import empty

from config.settings.environment import (
    Environment,
    enable_multiprocess_metrics,
    sqlite_database,
)
from tests.harness.forked_process import ForkedProcess

NAMES = ("SECRET_KEY", "JWT_SECRET_KEY", "FIELD_ENCRYPTION_KEYS")
SECRETS = {name: name[0] * 40 for name in NAMES}


READ_SETTINGS = ("-c", "import config.settings.base")
"""All that a good value has to pass; loading the apps as well takes five times as long."""


def start(folder: Path, *command: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Start Django's command line, or `command`, in an environment of nothing but `env`."""
    return subprocess.run(
        [sys.executable, *(command or ("manage.py", "check"))],
        cwd=settings.BASE_DIR,
        env={"PATH": os.environ["PATH"], "ACE_DATA_DIR": str(folder / "data")} | env,
        capture_output=True,
        text=True,
        check=False,
    )


def start_forked(folder: Path, env: dict[str, str]) -> tuple[int, str, str]:
    """What `manage.py check` ends with and prints, in a fork that has read no settings.

    For starts that the settings stop: what would be imported after them is there already.
    """

    def body() -> None:
        for stream, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT), stream)
        manage = settings.BASE_DIR / "manage.py"
        for name in [name for name in sys.modules if name.startswith("config.settings")]:
            del sys.modules[name]
        settings._wrapped = empty
        os.environ.clear()
        os.environ.update({"PATH": os.defpath, "ACE_DATA_DIR": str(folder / "data")} | env)
        sys.argv = [str(manage), "check"]
        try:
            runpy.run_path(str(manage), run_name="__main__")
        except SystemExit as stop:  # whose text the interpreter prints at its end
            os.write(2, str(stop.code).encode())
            os._exit(1)

    with ForkedProcess(body) as process:
        code = process.wait(30)
    return code, (folder / "err").read_text(), (folder / "out").read_text()


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ({"PORT": "web"}, "Set PORT to a whole number from 1 to 65535; it is 'web'."),
        ({"PORT": "65536"}, "Set PORT to a whole number from 1 to 65535; it is '65536'."),
        ({"DEBUG": "maybe"}, "Set DEBUG to true or false; it is 'maybe'."),
        (
            {"OPENAI_BASE_URL": "127.0.0.1:8080/v1"},
            "Set OPENAI_BASE_URL to an address such as https://api.example.org/v1; "
            "it is '127.0.0.1:8080/v1'.",
        ),
        ({"ACE_ENGINE": "magic"}, "Set ACE_ENGINE to one of openai, rules; it is 'magic'."),
        (
            {"ACE_ENGINE": "openai"},
            "Set OPENAI_API_KEY, or the OPENAI_BASE_URL of a local server, or set ACE_ENGINE=rules "
            "to run without a model.",
        ),
        (
            {"RATE_LIMITS": "log_in=many"},
            "Set RATE_LIMITS to pairs such as log_in=10/m, of ask_playground, create_playbook, "
            "log_in, oauth_token, open_session, register, register_client, report_outcome, "
            "report_outcome_over, requests, send_mail, test_webhook, trigger_evolution, "
            "try_llm_key; it is 'log_in=many'.",
        ),
        (
            {"EVOLUTION_OUTCOME_THRESHOLD": "0"},
            "Set EVOLUTION_OUTCOME_THRESHOLD to a whole number from 1 to 1000000000000; it is '0'.",
        ),
        *(
            (
                {"BILLING_ENABLED": "true", "STRIPE_SECRET_KEY": key},
                "Set STRIPE_SECRET_KEY to the secret key of your Stripe account (sk_test_… or "
                "sk_live_…), or set BILLING_ENABLED=false.",
            )
            for key in ("", "pk_test_0123456789")
        ),
        (
            SECRETS | {"DATABASE_URL": "mysql://root:hunter2@localhost/ace"},
            "Set DATABASE_URL to postgres://USER:PASSWORD@HOST:PORT/NAME, or unset it for SQLite.",
        ),
        (
            SECRETS | {"DATABASE_URL": "postgres://ace:hunter2@localhost:port/ace"},
            "Set DATABASE_URL to postgres://USER:PASSWORD@HOST:PORT/NAME, or unset it for SQLite.",
        ),
    ],
)
def test_a_wrong_value_stops_with_one_sentence(
    tmp_path: Path, env: dict[str, str], sentence: str
) -> None:
    assert start_forked(tmp_path, env) == (1, sentence, "")


@pytest.mark.parametrize("missing", NAMES)
def test_production_asks_for_its_secrets(tmp_path: Path, missing: str) -> None:
    env = SECRETS | {"DATABASE_URL": "postgres://ace@localhost/ace", missing: ""}
    ended = start(tmp_path, **env)
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"Set {missing} to at least 32 random characters")


def test_a_local_run_makes_its_secrets_once_and_keeps_them_private(tmp_path: Path) -> None:
    assert start(tmp_path, *READ_SETTINGS).returncode == 0
    secret = tmp_path / "data" / "secret_key"
    before = secret.read_text()
    assert start(tmp_path, *READ_SETTINGS).returncode == 0
    assert secret.read_text() == before
    assert secret.stat().st_mode & 0o077 == 0


def test_an_empty_value_is_an_unset_one_and_a_base_url_alone_means_a_model(tmp_path: Path) -> None:
    unset = dict.fromkeys(("PORT", "ACE_ENGINE", "ALLOWED_HOSTS", "OPENAI_API_KEY"), "")
    engine = "from config.settings.base import ACE_ENGINE; print(ACE_ENGINE)"
    ended = start(tmp_path, "-c", engine, **unset, OPENAI_BASE_URL="http://127.0.0.1:8080/v1")
    assert (ended.returncode, ended.stdout) == (0, "openai\n")


def test_a_rate_limit_of_the_environment_replaces_one_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RATE_LIMITS", "log_in=9/m")
    found = Environment().rates("RATE_LIMITS", {"log_in": "5/m", "register": "20/h"})
    assert found == {"log_in": "9/m", "register": "20/h"}


def test_a_metrics_folder_of_another_user_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(ImproperlyConfigured, match="Set ACE_DATA_DIR to a directory of yours"):
        enable_multiprocess_metrics(tmp_path)
    assert os.environ.get("PROMETHEUS_MULTIPROC_DIR") != str(tmp_path)


def test_the_release_is_that_of_the_project() -> None:
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())["project"]
    assert project["version"] == settings.VERSION


def test_the_database_file_is_for_its_owner_only(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    old = tmp_path / "ace.sqlite3"
    old.touch(mode=0o644)
    for file in (old, tmp_path / "new" / "ace.sqlite3"):
        file.parent.mkdir(mode=0o755, exist_ok=True)
        assert sqlite_database(file.parent)["NAME"] == str(file)
        assert file.stat().st_mode & 0o777 == 0o600
