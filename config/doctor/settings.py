"""Checks for settings that are valid alone and wrong together."""

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import validate_host

from config.doctor.findings import Finding, Options, failed, ok, warning

LOCAL_NAMES = {"localhost", "127.0.0.1", "[::1]", "::1"}


def check_settings(options: Options) -> Finding:
    errors, warnings = list(_errors()), list(_warnings())
    if errors:
        return failed("; ".join(errors), "Fix each, then restart every process.")
    if warnings:
        return warning("; ".join(warnings), "Fix each, unless intended.")
    return ok("no contradictions")


def _errors() -> Iterator[str]:
    if settings.DEBUG and not settings.LOCAL:
        yield "DEBUG=true shows tracebacks to everyone"
    yield from _public_url_errors()
    if settings.EMAIL_VERIFICATION == "mandatory" and "console" in settings.EMAIL_BACKEND:
        yield "EMAIL_VERIFICATION=mandatory without EMAIL_URL: nobody can confirm an address"
    if os.environ.get("FORWARDED_ALLOW_IPS", "").strip() == "*":
        yield "FORWARDED_ALLOW_IPS=* lets every client claim any address; list your proxies"


def _public_url_errors() -> Iterator[str]:
    if not settings.PUBLIC_URL:
        return
    parts = urlsplit(settings.PUBLIC_URL)
    if not validate_host(parts.hostname or "", settings.ALLOWED_HOSTS):
        yield "the host of PUBLIC_URL is not in ALLOWED_HOSTS"
    if settings.HTTPS and parts.scheme == "http":
        yield "PUBLIC_URL begins with http:// although HTTPS is on"


def _warnings() -> Iterator[str]:
    if settings.ACE_ENGINE == "rules" and settings.OPENAI_API_KEY:
        yield "OPENAI_API_KEY is set, but ACE_ENGINE=rules never uses it"
    if settings.SECRET_KEY == settings.JWT_SECRET_KEY:
        yield "SECRET_KEY and JWT_SECRET_KEY are the same"
    if settings.SECRET_KEY in settings.FIELD_ENCRYPTION_KEYS:
        yield "SECRET_KEY is one of FIELD_ENCRYPTION_KEYS"
    if not settings.LOCAL:
        yield from _production_warnings()


def _production_warnings() -> Iterator[str]:
    names = set(settings.ALLOWED_HOSTS)
    if "*" in names:
        yield "ALLOWED_HOSTS=* lets links in e-mail lead to any host that a request names"
    elif not names - LOCAL_NAMES:
        yield "ALLOWED_HOSTS has only this machine: no other can reach it"
    elif not settings.HTTPS:
        yield "HTTPS=false sends passwords and keys unencrypted"
    if settings.BILLING_ENABLED and not settings.STRIPE_LIVE_MODE and settings.HTTPS:
        yield "BILLING_ENABLED with a Stripe test key takes no money"
