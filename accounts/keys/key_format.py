"""The format of an API key: `ace_live_<12 id>_<43 secret><6 CRC32>`, all base62. Pure.

The id finds the row, the 256-bit secret authenticates, and the checksum lets secret scanners and
users recognize a key or a typo without a database.
"""

import hashlib
import re
import secrets
import string
import zlib
from dataclasses import dataclass
from hmac import compare_digest

from core.security.redaction import API_KEY_PATTERN

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
KEY_PREFIX = "ace_live_"
ID_LENGTH, SECRET_LENGTH, CHECK_LENGTH = 12, 43, 6
# What an operator may choose as ACE_BOOTSTRAP_API_KEY. No dot: that tells it from a JWT.
CHOSEN_PATTERN = re.compile(r"[0-9A-Za-z_-]{24,200}")


@dataclass(frozen=True)
class GeneratedKey:
    """A new key; only `prefix` and `digest` may be stored."""

    token: str
    prefix: str
    digest: str


def mint() -> GeneratedKey:
    """A new key from the operating system's random generator."""
    prefix = _random(ID_LENGTH)
    body = f"{KEY_PREFIX}{prefix}_{_random(SECRET_LENGTH)}"
    token = body + _checksum(body)
    return GeneratedKey(token, prefix, digest(token))


def parse(token: str) -> str | None:
    """The id in a well-formed key; None when format or checksum are wrong."""
    if not API_KEY_PATTERN.fullmatch(token):
        return None
    body, check = token[:-CHECK_LENGTH], token[-CHECK_LENGTH:]
    if not compare_digest(check, _checksum(body)):
        return None
    return token[len(KEY_PREFIX) : len(KEY_PREFIX) + ID_LENGTH]


def locate(token: str) -> str:
    """The 12 characters that find the row of this key.

    A bootstrap key that an operator chose may have another format: it is found by its digest.
    """
    return parse(token) or digest(token)[:ID_LENGTH]


def digest(token: str) -> str:
    """SHA-256 in hex: enough for 256-bit secrets, and Argon2 would cost 169 ms a request."""
    return hashlib.sha256(token.encode()).hexdigest()


def matches(token: str, stored: str) -> bool:
    """True when the token has the stored digest; compares in constant time."""
    return compare_digest(digest(token), stored)


def _random(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def _checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(CHECK_LENGTH):
        number, rest = divmod(number, len(ALPHABET))
        digits = ALPHABET[rest] + digits
    return digits
