"""What the doors can do with people, their sign-ins and their keys."""

from accounts.services.api_keys import (
    create_api_key,
    revoke_api_key,
    rotate_api_key,
    update_api_key,
)
from accounts.services.credentials import principal_for_bearer, principal_for_key
from accounts.services.signing_in import log_in, register_user
from accounts.tokens import TokenPair, issue_tokens, refresh_tokens, revoke_tokens

__all__ = [
    "TokenPair",
    "create_api_key",
    "issue_tokens",
    "log_in",
    "principal_for_bearer",
    "principal_for_key",
    "refresh_tokens",
    "register_user",
    "revoke_api_key",
    "revoke_tokens",
    "rotate_api_key",
    "update_api_key",
]
