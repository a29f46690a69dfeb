"""Validation of redirect URIs: https, or http on the user's own machine. Pure."""

import re
from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
MAX_LENGTH = 500
# urlsplit() silently drops tabs and line breaks: check the raw text first.
URI = re.compile(r"[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]+")
HOST = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


def redirect_uri_problem(uri: str, *, app_schemes: Collection[str] = ()) -> str:
    """Why the URI is not allowed, as a sentence, or ""."""
    if len(uri) > MAX_LENGTH or not URI.fullmatch(uri):
        return f"A redirect URI must be ASCII without a fragment, at most {MAX_LENGTH} characters."
    parts = _split(uri)
    if parts is None or parts.username is not None or "@" in parts.netloc:
        return "A redirect URI must have a valid host and port, and no user."
    if parts.scheme in app_schemes:
        return ""
    host = parts.hostname or ""
    if parts.scheme == "https" and HOST.fullmatch(host):
        return ""
    if parts.scheme == "http" and host in LOOPBACK:
        return ""
    return "A redirect URI must use https://, or http:// with 127.0.0.1, [::1] or localhost."


def display_host(uri: str) -> str:
    """The host of the URI for the consent page, without the path, which a client can make up."""
    parts = urlsplit(uri)
    if parts.scheme not in {"http", "https"}:
        return f"the app behind {parts.scheme}:"
    return parts.netloc


def is_loopback(uri: str) -> bool:
    return urlsplit(uri).hostname in LOOPBACK


def form_action(uri: str) -> str:
    """The source that `form-action` of a Content-Security-Policy needs for this one redirect."""
    parts = urlsplit(uri)
    if parts.scheme not in {"http", "https"} or "[" in parts.netloc:
        # A policy cannot express an app's scheme with a host, nor an IPv6 address.
        return f"{parts.scheme}:"
    return f"{parts.scheme}://{parts.netloc}"


def _split(uri: str) -> SplitResult | None:
    try:
        parts = urlsplit(uri)
        return parts if parts.port != 0 else None
    except ValueError:
        return None
