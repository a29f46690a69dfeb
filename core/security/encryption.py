"""Sealing what has to be read again: keys of users' own providers, secrets of second factors.

MultiFernet under FIELD_ENCRYPTION_KEYS: the first key seals, every key opens.
"""

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class DecryptionError(Exception):
    """No key of FIELD_ENCRYPTION_KEYS opens this."""


def encrypt(text: str) -> str:
    """The text, readable only with the first key."""
    return _keys().encrypt(text.encode()).decode()


def decrypt(sealed: str) -> str:
    """The text that was sealed. Raises DecryptionError."""
    try:
        return _keys().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise DecryptionError("No key of FIELD_ENCRYPTION_KEYS opens this.") from None


def reencrypt(sealed: str) -> str:
    """The same text under the first key. Raises DecryptionError."""
    try:
        return _keys().rotate(sealed.encode()).decode()
    except InvalidToken:
        raise DecryptionError("No key of FIELD_ENCRYPTION_KEYS opens this.") from None


def _keys() -> MultiFernet:
    # The settings are random texts of 32 characters or more, so one SHA-256 makes keys of them.
    digests = (hashlib.sha256(key.encode()).digest() for key in settings.FIELD_ENCRYPTION_KEYS)
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])
