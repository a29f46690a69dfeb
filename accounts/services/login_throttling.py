"""Throttling of failed logins per account and source: guessing gets slow, no account is locked.

The source is the client's network, or the browser by its device cookie: attempts from elsewhere
never delay a browser that the user logged in with before (OWASP device cookies). Known and unknown
accounts are delayed alike.
"""

import hashlib
import ipaddress
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.db import connection

from accounts.keys.signed_tokens import SignedToken
from accounts.models import LoginAttempts, User
from core.emails import send_security_notice
from core.errors import RateLimited, WrongCode

FREE_ATTEMPTS, MAX_DELAY_SECONDS, REMEMBERED_SECONDS = 5, 15 * 60, 24 * 3600
DEVICE = SignedToken("accounts.device", seconds=365 * 86_400)
# Counted before the password is checked, in one statement: of 200 parallel guesses all but the free
# attempts are refused. The delay doubles from 1 s to 15 minutes.
COUNT_ATTEMPT = """
INSERT INTO accounts_loginattempts AS known (key, failures, wait_until) VALUES (%(key)s, 1, %(now)s)
ON CONFLICT (key) DO UPDATE SET
  failures = CASE WHEN known.wait_until < %(old)s THEN 1
             ELSE known.failures + 1 END,
  wait_until = %(now)s + CASE
    WHEN known.wait_until < %(old)s OR known.failures + 1 < %(free)s THEN 0
    WHEN known.failures + 1 >= %(free)s + 10 THEN %(longest)s
    ELSE 1 << (known.failures + 1 - %(free)s) END
WHERE known.wait_until <= %(now)s RETURNING failures
"""


@dataclass(frozen=True)
class LoginSource:
    """The source of a login attempt: a network, or a browser known to the account."""

    address: str
    device: str = ""

    @property
    def name(self) -> str:
        return f"device {self.device}" if self.device else f"network {network_of(self.address)}"


EVERYWHERE = LoginSource("")


def count_login_attempt(*, account: str, source: LoginSource) -> int:
    """Count an attempt; call `reset_login_attempts` after a success. Returns how many there were.

    Raises RateLimited during the delay after earlier attempts.
    """
    now = time.time()
    key = _key(account, source)
    values: dict[str, str | float] = {
        "key": key,
        "now": now,
        "old": now - REMEMBERED_SECONDS,
        "free": FREE_ATTEMPTS,
        "longest": MAX_DELAY_SECONDS,
    }
    with connection.cursor() as cursor:
        cursor.execute(COUNT_ATTEMPT, values)
        counted = cursor.fetchone()
    if counted is None:
        row = LoginAttempts.objects.filter(key=key).first()
        wait = int(row.wait_until - now) + 1 if row else 1
        raise RateLimited("Too many failed attempts.", retry_after=wait)
    return int(counted[0])


@contextmanager
def throttle_codes(user: User, source: LoginSource) -> Iterator[None]:
    """Count the try of a second-factor code; ValidationError or WrongCode inside: it was wrong.

    Over all networks together, unlike passwords: who tries codes knows the password. A browser
    that the user logged in with before has its own delays. Raises RateLimited.
    """
    account, counted = f"code {user.pk}", source if source.device else EVERYWHERE
    attempts = count_login_attempt(account=account, source=counted)
    try:
        yield
    except (ValidationError, WrongCode):  # nothing else says that the code was wrong
        if attempts == FREE_ATTEMPTS:
            send_security_notice(user, "Several wrong second-factor codes were entered")
        raise
    reset_login_attempts(account=account, source=counted)


def reset_login_attempts(*, account: str, source: LoginSource) -> None:
    """Forget the failed attempts after a successful login."""
    LoginAttempts.objects.filter(key=_key(account, source)).delete()


def delete_old_login_attempts() -> int:
    """Delete attempts older than REMEMBERED_SECONDS; returns how many."""
    return LoginAttempts.objects.filter(wait_until__lt=time.time() - REMEMBERED_SECONDS).delete()[0]


def make_device_cookie(user: User) -> str:
    """The value of the cookie that marks a browser as known to the account."""
    return DEVICE.make(user, secrets.token_urlsafe(12))


def read_device_cookie(cookie: str, email: str) -> str:
    """The browser's id in a valid cookie of this account, else empty."""
    found = DEVICE.read(cookie)
    if found is None or found[0].email != email.strip().lower():
        return ""
    return found[1][0]


def network_of(address: str) -> str:
    """The /24 or /64 around an address, which one attacker often controls."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    bits = 24 if found.version == 4 else 64
    return str(ipaddress.ip_network((found, bits), strict=False))


def _key(account: str, source: LoginSource) -> str:
    name = account.strip().lower().encode(errors="replace").decode()
    return hashlib.sha256(f"{name} {source.name}".encode()).hexdigest()
