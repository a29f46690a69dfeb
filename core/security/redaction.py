"""Redaction of credentials in texts that agents send, such as traces. Pure.

The patterns have a fixed prefix and a bounded length: prose is left alone, and no text makes the
search slow.
"""

import re

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
KNOWN_CREDENTIALS = re.compile(
    "|".join(
        (
            r"\bace_o[ar]t_[0-9A-Za-z_-]{43}",  # our own tokens of connected apps
            r"\bsk-ant-[0-9A-Za-z_-]{20,200}",  # Anthropic
            r"\bsk-(?:proj-|svcacct-|or-v1-)?[0-9A-Za-z_-]{20,200}",  # OpenAI, OpenRouter
            r"\b[sr]k_(?:live|test)_[0-9A-Za-z]{16,200}",  # Stripe
            r"\bwhsec_[0-9A-Za-z]{16,200}",
            r"\bgh[pousr]_[0-9A-Za-z]{36,255}",  # GitHub
            r"\bgithub_pat_[0-9A-Za-z_]{22,255}",
            r"\bglpat-[0-9A-Za-z_-]{20,60}",  # GitLab
            r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",  # AWS
            r"\bAIza[0-9A-Za-z_-]{35}",  # Google
            r"\bya29\.[0-9A-Za-z_-]{20,500}",
            r"\bxox[abeoprs]-[0-9A-Za-z-]{10,200}",  # Slack
            r"\bhf_[0-9A-Za-z]{30,60}",  # Hugging Face
            r"\bnpm_[0-9A-Za-z]{36}\b",
            r"\bxapp-[0-9A-Za-z-]{10,200}",
            r"\bSG\.[0-9A-Za-z_-]{16,32}\.[0-9A-Za-z_-]{30,64}",  # SendGrid
            r"\bpypi-[0-9A-Za-z_-]{50,300}",
            # JSON web tokens
            r"\beyJ[0-9A-Za-z_-]{10,2000}\.eyJ[0-9A-Za-z_-]{10,4000}\.[0-9A-Za-z_-]{20,1000}",
        )
    )
)
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
