"""Sealing what has to be read again: keys of users' own providers, secrets of second factors.

MultiFernet under FIELD_ENCRYPTION_KEYS: the first key seals, every key opens.
"""

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class Unreadable(Exception):
    """No key of FIELD_ENCRYPTION_KEYS opens this."""


def seal(text: str) -> str:
    """The text, readable only with the first key."""
    return _keys().encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """The text that was sealed. Raises Unreadable."""
    try:
        return _keys().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unreadable("No key of FIELD_ENCRYPTION_KEYS opens this.") from None


def reseal(sealed: str) -> str:
    """The same text under the first key. Raises Unreadable."""
    try:
        return _keys().rotate(sealed.encode()).decode()
    except InvalidToken:
        raise Unreadable("No key of FIELD_ENCRYPTION_KEYS opens this.") from None


def _keys() -> MultiFernet:
    # The settings are random texts of 32 characters or more, so one SHA-256 makes keys of them.
    digests = (hashlib.sha256(key.encode()).digest() for key in settings.FIELD_ENCRYPTION_KEYS)
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])
