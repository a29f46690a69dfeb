"""Reads environment variables: empty means unset, and an invalid value stops the start."""

import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

from config.management.local_secrets import read_or_create_secret

TRUE_WORDS, FALSE_WORDS = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}
MODEL_OPTIONS = {"temperature", "seed", "top_p", "max_tokens", "context", "extra_body"}
RATE = re.compile(r"\d+/\d*[smhd]")


def parse_bool(text: str) -> bool:
    """Parse true or false; ValueError for anything else (django-environ takes it for false)."""
    if text.lower() not in TRUE_WORDS | FALSE_WORDS:
        raise ValueError("true or false")
    return text.lower() in TRUE_WORDS


def parse_int(text: str, first: int = 1, last: int = 10**12) -> int:
    """Parse a whole number from `first` to `last`; ValueError otherwise."""
    if not re.fullmatch(r"[0-9]{1,13}", text) or not first <= int(text) <= last:
        raise ValueError(f"a whole number from {first} to {last}")
    return int(text)


def parse_list(text: str) -> list[str]:
    """Parse a comma-separated list."""
    return [word.strip() for word in text.split(",") if word.strip()]


CASTS: dict[Any, Callable[[str], Any]] = {bool: parse_bool, int: parse_int, list: parse_list}


class Environment(environ.Env):  # type: ignore[misc]  # django-environ ships no types
    """django-environ with strict values, a clear error message, and no `$NAME` look-ups."""

    def get_value(
        self, var: str, cast: Any = None, default: Any = None, parse_default: bool = False
    ) -> Any:
        text = self.ENVIRON.get(var, "").strip()
        if not text:
            return default
        try:
            return CASTS.get(cast, cast or str)(text)
        except ValueError as error:
            raise ImproperlyConfigured(f"Set {var} to {error}; it is {text!r}.") from None

    def port(self, var: str, *, default: int) -> int:
        """A TCP port."""
        return int(self.get_value(var, lambda text: parse_int(text, 1, 65_535), default))

    def seconds(self, var: str, *, default: int) -> int:
        """A whole number that may be 0."""
        return int(self.get_value(var, lambda text: parse_int(text, 0), default))

    def dollars(self, var: str, *, default: str) -> Decimal:
        """An amount with at most two decimals."""

        def read(text: str) -> Decimal:
            if not re.fullmatch(r"[0-9]{1,7}(\.[0-9]{1,2})?", text):
                raise ValueError("an amount such as 5 or 2.50")
            return Decimal(text)

        return Decimal(self.get_value(var, read, default))

    def model_options(self, var: str) -> dict[str, dict[str, Any]]:
        """JSON: by role (`*`: all) an object of options."""

        def read(text: str) -> dict[str, dict[str, Any]]:
            found = json.loads(text)
            given = list(found.values()) if isinstance(found, dict) else [found]
            if not all(isinstance(one, dict) and set(one) <= MODEL_OPTIONS for one in given):
                raise ValueError(f"JSON by role (`*`: all) of {', '.join(sorted(MODEL_OPTIONS))}")
            return dict(found)

        return dict(self.get_value(var, read, {}))

    def choice(self, var: str, choices: set[str], *, default: str) -> str:
        """One of a few words, in lower case."""

        def pick(text: str) -> str:
            if text.lower() not in choices:
                raise ValueError(f"one of {', '.join(sorted(choices))}")
            return text.lower()

        return str(self.get_value(var, pick, default))

    def rates(self, var: str, defaults: dict[str, str]) -> dict[str, str]:
        """Limits by name, as django-ratelimit writes them: `report_outcome=1000/h,log_in=10/m`."""

        def read(text: str) -> dict[str, str]:
            pairs = dict(word.partition("=")[::2] for word in parse_list(text))
            if not set(pairs) <= set(defaults) or not all(map(RATE.fullmatch, pairs.values())):
                raise ValueError(f"pairs such as log_in=10/m, of {', '.join(sorted(defaults))}")
            return pairs

        changed: dict[str, str] = self.get_value(var, read, {})
        return defaults | changed

    def secret_file(self, name: str, folder: str) -> str:
        """The secret in a file of the folder, generated if missing."""
        try:
            return read_or_create_secret(name, Path(folder))
        except OSError as error:
            raise ImproperlyConfigured(
                f"Set ACE_SECRETS_DIR to a directory of yours: {error}."
            ) from None

    def origin(self, var: str) -> str:
        """An address without a path, such as https://ace.example.org; "" when unset."""

        def read(text: str) -> str:
            if not re.fullmatch(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?", text.lower().rstrip("/")):
                raise ValueError("an address without a path, such as https://ace.example.org")
            return text.lower().rstrip("/")

        return str(self.get_value(var, read, ""))

    def address(self, var: str) -> str:
        """An address that may have a path, such as https://api.example.org/v1; "" when unset."""

        def read(text: str) -> str:
            if not re.fullmatch(r"https?://[^\s/?#]+[^\s?#]*", text, re.IGNORECASE):
                raise ValueError("an address such as https://api.example.org/v1")
            return text

        return str(self.get_value(var, read, ""))

    def postgres(self, var: str) -> dict[str, Any]:
        """The database of a postgres:// URL; the error never repeats its password."""
        message = f"Set {var} to postgres://USER:PASSWORD@HOST:PORT/NAME, or unset it for SQLite."
        try:
            found: dict[str, Any] = self.db_url_config(self.ENVIRON[var].strip())
        except (ValueError, KeyError, ImproperlyConfigured):
            raise ImproperlyConfigured(message) from None
        if found["ENGINE"] != "django.db.backends.postgresql" or not found["NAME"]:
            raise ImproperlyConfigured(message)
        return found

    def mail(self, var: str, url: str) -> dict[str, Any]:
        """Django's EMAIL_* of a mail URL; the error never repeats its password."""
        try:
            found: dict[str, Any] = self.email_url_config(url)
        except (ValueError, ImproperlyConfigured):
            raise ImproperlyConfigured(
                f"Set {var} to smtp+tls://USER:PASSWORD@HOST:587 or smtp+ssl://…:465, or unset it."
            ) from None
        return found | {"EMAIL_TIMEOUT": 10}


def enable_multiprocess_metrics(folder: Path) -> None:
    """Let every process of this host count its requests in files of `folder`.

    prometheus_client reads the variable at import, so the settings set it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = folder.lstat().st_uid
    except OSError as error:
        raise ImproperlyConfigured(f"Set ACE_DATA_DIR to a directory of yours: {error}.") from None
    # Temporary folders are shared: another user may have created this one.
    if owner != os.getuid():
        raise ImproperlyConfigured(f"Set ACE_DATA_DIR to a directory of yours: {folder} is not.")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)


def sqlite_database(data_dir: Path) -> dict[str, Any]:
    """The DATABASES entry of SQLite: WAL, and transactions that take the write lock at BEGIN.

    The file is for its owner only, whatever the mode of the folder; SQLite's own files follow it.
    """
    file = data_dir / "ace.sqlite3"
    with suppress(OSError):  # a folder that is only read, or another's: the database says more
        file.touch(mode=0o600)
        file.chmod(0o600)
    return {
        "ENGINE": "core.sql.sqlite",
        "NAME": str(file),
        # Enqueueing is about ten times faster on a persistent connection.
        "CONN_MAX_AGE": 60,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
        },
    }
