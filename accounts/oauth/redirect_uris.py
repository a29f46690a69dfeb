"""Where a client may have the browser sent: https, or http on the person's own machine. Pure."""

import re
from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
MAX_LENGTH = 500
# urlsplit() drops tabs and line breaks in silence: look at the raw text first.
URI = re.compile(r"[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]+")
HOST = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


def redirect_uri_problem(uri: str, *, app_schemes: Collection[str] = ()) -> str:
    """Why nobody may be sent there, as a sentence, or ""."""
    if len(uri) > MAX_LENGTH or not URI.fullmatch(uri):
        return f"A redirect URI is plain ASCII without a fragment, {MAX_LENGTH} characters at most."
    parts = _split(uri)
    if parts is None or parts.username is not None or "@" in parts.netloc:
        return "A redirect URI names a host and a port, and no user."
    if parts.scheme in app_schemes:
        return ""
    host = parts.hostname or ""
    if parts.scheme == "https" and HOST.fullmatch(host):
        return ""
    if parts.scheme == "http" and host in LOOPBACK:
        return ""
    return "A redirect URI begins with https://, or with http:// and 127.0.0.1, [::1] or localhost."


def display_host(uri: str) -> str:
    """What a person is told about it: the host, never the path that a client may make up."""
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
        # A policy has no word for an app's scheme with a host, nor for an IPv6 address.
        return f"{parts.scheme}:"
    return f"{parts.scheme}://{parts.netloc}"


def _split(uri: str) -> SplitResult | None:
    try:
        parts = urlsplit(uri)
        return parts if parts.port != 0 else None
    except ValueError:
        return None
