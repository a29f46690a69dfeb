"""Delays between failed sign-ins, per account and source: guessing gets slow, nobody is locked out.

The source is the network of the client, or the browser by its device cookie: what an attacker
tries from elsewhere never delays a browser that the person logged in with before (OWASP's device
cookies). Known and unknown accounts are delayed alike.
"""

import hashlib
import ipaddress
import secrets
import time
from dataclasses import dataclass

from django.core import signing
from django.db import connection
from django.utils.crypto import salted_hmac

from accounts.models import LoginAttempts, User
from core.errors import RateLimited

FREE_ATTEMPTS, MAX_DELAY_SECONDS, REMEMBERED_SECONDS = 5, 15 * 60, 24 * 3600
DEVICE_SALT, DEVICE_AGE = "accounts.device", 365 * 86_400
# Counted before the password is looked at, in one statement: 200 parallel guesses are 200
# attempts, and all but the free ones have to wait. The delay doubles from 1 s to 15 minutes.
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
    """Where an attempt comes from: a network, or a browser that the account knows."""

    address: str
    device: str = ""

    @property
    def name(self) -> str:
        return f"device {self.device}" if self.device else f"network {network_of(self.address)}"


def count_login_attempt(*, account: str, source: LoginSource) -> None:
    """One more attempt counts; `reset_login_attempts` after a success.

    Raises RateLimited while the delay of the ones before lasts.
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
        taken = cursor.fetchone()
    if taken is None:
        row = LoginAttempts.objects.filter(key=key).first()
        wait = int(row.wait_until - now) + 1 if row else 1
        message = f"Too many failed attempts from here. Try again in {wait} s."
        raise RateLimited(message, retry_after=wait)


def reset_login_attempts(*, account: str, source: LoginSource) -> None:
    """The person is who they say: the next failure is a first one again."""
    LoginAttempts.objects.filter(key=_key(account, source)).delete()


def delete_old_login_attempts() -> int:
    """Attempts of which nothing follows any more are gone."""
    return LoginAttempts.objects.filter(wait_until__lt=time.time() - REMEMBERED_SECONDS).delete()[0]


def make_device_cookie(user: User) -> str:
    """The value of a cookie that makes this browser one the account knows, with this password."""
    device = secrets.token_urlsafe(12)
    return signing.dumps(
        [device, _email_digest(user.email), _password_digest(user.password)], salt=DEVICE_SALT
    )


def read_device_cookie(cookie: str, email: str) -> str:
    """The browser's id when the cookie is ours and of this account, else an empty text.

    A new password makes every browser unknown: who had the old one is a stranger again.
    """
    try:
        device, mark, lock = signing.loads(cookie, salt=DEVICE_SALT, max_age=DEVICE_AGE)
    except (signing.BadSignature, ValueError, TypeError):
        return ""
    if not secrets.compare_digest(str(mark), _email_digest(email)):
        return ""
    user = User.objects.filter(email=email.strip().lower()).only("password").first()
    fits = user is not None and secrets.compare_digest(str(lock), _password_digest(user.password))
    return str(device) if fits else ""


def network_of(address: str) -> str:
    """The /24 or /64 around an address: what one attacker has at hand."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    bits = 24 if found.version == 4 else 64
    return str(ipaddress.ip_network((found, bits), strict=False))


def _password_digest(password: str) -> str:
    return salted_hmac(DEVICE_SALT, password).hexdigest()[:32]


def _email_digest(email: str) -> str:
    return hashlib.sha256(email.strip().lower().encode(errors="replace")).hexdigest()[:32]


def _key(account: str, source: LoginSource) -> str:
    return hashlib.sha256(f"{_email_digest(account)} {source.name}".encode()).hexdigest()
