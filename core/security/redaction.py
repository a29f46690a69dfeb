"""Redaction of credentials in texts that agents send, such as traces. Pure.

The patterns have a fixed prefix and a bounded length: prose is left alone, and no text makes the
search slow.
"""

import re
import tomllib
from pathlib import Path

# Columns, of our tables and of installed apps, that no export holds and no look-up may test.
SECRET_FIELDS = {
    *("password", "digest", "encrypted_key", "session_key", "request_hash", "token", "data"),
    *("token_checksum", "client_secret", "code_challenge", "code", "body", "secret", "payload"),
}
API_KEY_PATTERN = re.compile(r"ace_live_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}")
REMOVED_API_KEY = "[API key removed]"
REMOVED_CREDENTIAL = "[credential removed]"
PRIVATE_KEY_BLOCK = re.compile(
    r"-----BEGIN (?:[A-Z]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----)[\s\S]){0,8000}"
    r"(?:-----END (?:[A-Z]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?"
)
_KNOWN = Path(__file__).with_name("known_credentials.toml").read_text(encoding="utf-8")
KNOWN_CREDENTIALS = re.compile("|".join(tomllib.loads(_KNOWN)["patterns"]))
# Known by their context: a user and password in a URL, an AWS secret after its name.
CREDENTIALS_BY_CONTEXT = re.compile(
    r"(?<=://)[^\s/:@]{0,100}:[^\s/@]{1,200}@"
    r"|(?i:(?<=secret_access_key)[\"']?\s{0,3}[=:]\s{0,3}[\"']?)[0-9A-Za-z/+]{40}(?![0-9A-Za-z/+])"
)


def redact(text: str) -> str:
    """The text without our keys and tokens and well-known credentials of other services."""
    if not text:
        return text
    text = API_KEY_PATTERN.sub(REMOVED_API_KEY, text)
    for pattern in (PRIVATE_KEY_BLOCK, CREDENTIALS_BY_CONTEXT, KNOWN_CREDENTIALS):
        text = pattern.sub(REMOVED_CREDENTIAL, text)
    return text
