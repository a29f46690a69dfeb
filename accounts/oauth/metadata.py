"""The metadata documents of the authorization server and the resource (RFC 8414, RFC 9728)."""

from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from accounts.oauth.redirect_uris import LOOPBACK
from core.security.scopes import KEY_SCOPES

DEFAULT_PORTS = {"http": ":80", "https": ":443"}
AUTH_METHODS = ("none", "client_secret_post", "client_secret_basic")


def public_origin(scheme: str, host: str) -> str:
    """The origin that users and agents use: PUBLIC_URL, else that of the request."""
    return str(settings.PUBLIC_URL) or _origin(scheme, host)


def request_origin(request: HttpRequest) -> str:
    return public_origin(str(request.scheme), request.get_host())


def is_oauth_available(origin: str) -> bool:
    """True where OAuth can work: clients require HTTPS, except on their own machine."""
    parts = urlsplit(origin)
    return bool(settings.OAUTH_ENABLED) and (parts.scheme == "https" or parts.hostname in LOOPBACK)


def mcp_resource(origin: str) -> str:
    """The only resource that tokens are valid for (RFC 8707)."""
    return f"{origin}/mcp"


def same_resource(given: str, *, known: Collection[str]) -> bool:
    """True if the URI is one of `known`: as it is, with a trailing slash, or its origin alone.

    Some clients send only the origin; the token is then for /mcp too.
    """
    try:
        parts = urlsplit(given)
        origin = _origin(parts.scheme, parts.netloc)
    except ValueError:
        return False
    plain = not (parts.query or parts.fragment or "@" in parts.netloc)
    return plain and any(
        resource in {origin + parts.path.rstrip("/"), mcp_resource(origin + parts.path.rstrip("/"))}
        for resource in known
    )


def resource_metadata_url(origin: str) -> str:
    return f"{origin}/.well-known/oauth-protected-resource/mcp"


def server_metadata(origin: str) -> dict[str, Any]:
    return {
        "issuer": origin,
        "authorization_endpoint": origin + reverse("oauth:authorize"),
        "token_endpoint": origin + reverse("oauth:token"),
        "registration_endpoint": origin + reverse("oauth:register"),
        "revocation_endpoint": origin + reverse("oauth:revoke"),
        "scopes_supported": list(KEY_SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "revocation_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": bool(settings.OAUTH_CLIENT_DOCUMENTS),
    }


def resource_metadata(origin: str) -> dict[str, Any]:
    return {
        "resource": mcp_resource(origin),
        "authorization_servers": [origin],
        "scopes_supported": list(KEY_SCOPES),
        "bearer_methods_supported": ["header"],
        "resource_name": "ACE Platform",
    }


def _origin(scheme: str, host: str) -> str:
    default = DEFAULT_PORTS.get(scheme.lower(), "none")
    return f"{scheme.lower()}://{host.lower().removesuffix(default)}"
