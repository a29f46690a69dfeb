"""Users, their credentials and connected apps."""

from accounts.models.api_keys import ApiKey, ApiKeyQuerySet
from accounts.models.connected_apps import ConnectedApp, ConnectedAppQuerySet
from accounts.models.llm_keys import LlmKey
from accounts.models.login_attempts import LoginAttempts
from accounts.models.refresh_tokens import RefreshToken
from accounts.models.users import User, UserManager

__all__ = [
    "ApiKey",
    "ApiKeyQuerySet",
    "ConnectedApp",
    "ConnectedAppQuerySet",
    "LlmKey",
    "LoginAttempts",
    "RefreshToken",
    "User",
    "UserManager",
]
