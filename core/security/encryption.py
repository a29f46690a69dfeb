"""Encryption of stored secrets that must be read again: LLM keys, secrets of second factors.

MultiFernet with FIELD_ENCRYPTION_KEYS: the first key encrypts, every key decrypts.
"""

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class DecryptionError(Exception):
    """No key of FIELD_ENCRYPTION_KEYS decrypts this."""


def encrypt(text: str) -> str:
    """The text encrypted with the first key."""
    return _keys().encrypt(text.encode()).decode()


def decrypt(encrypted: str) -> str:
    """The plain text. Raises DecryptionError."""
    try:
        return _keys().decrypt(encrypted.encode()).decode()
    except InvalidToken:
        raise DecryptionError("No key of FIELD_ENCRYPTION_KEYS decrypts this.") from None


def reencrypt(encrypted: str) -> str:
    """The same text encrypted with the first key. Raises DecryptionError."""
    try:
        return _keys().rotate(encrypted.encode()).decode()
    except InvalidToken:
        raise DecryptionError("No key of FIELD_ENCRYPTION_KEYS decrypts this.") from None


def _keys() -> MultiFernet:
    # The settings are random strings of at least 32 characters, so one SHA-256 derives a key.
    digests = (hashlib.sha256(key.encode()).digest() for key in settings.FIELD_ENCRYPTION_KEYS)
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])
