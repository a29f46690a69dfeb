"""Every route that the server knows answers with the headers that keep browsers in line."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import URLResolver, get_resolver
from pytest_django import Settings

from accounts.models import User
from tests.factories import PASSWORD

PARTS = {
    r"<uuid:\w+>": "00000000-0000-4000-8000-000000000000",
    r"<int:\w+>": "1",
    r"<(str|slug|path):\w+>": "x",
    r"<\w+>": "x",
    r"\(\?P<\w+>[^)]*\)": "x",
}
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Strict-Transport-Security": "max-age=31536000",
}
POLICY = ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'")


def addresses(node: Any = None, prefix: str = "") -> Iterator[str]:
    """One address for every pattern, admin and REST included."""
    for entry in (node or get_resolver()).url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from addresses(entry, path)
        else:
            for part, value in PARTS.items():
                path = re.sub(part, value, path)
            yield "/" + re.sub(r"[\^$?]|\\Z", "", path).replace("\\.", ".")


def missing(answer: Any) -> list[str]:
    policy = answer.get("Content-Security-Policy", "")
    lacking = [name for name, value in HEADERS.items() if answer.get(name) != value]
    lacking += [rule for rule in POLICY if rule not in policy]
    if re.search(r"unsafe-(inline|eval)|\*|https?:(?!//)", policy):
        lacking.append(f"a strict policy, not {policy}")
    return lacking if answer.get("X-Request-ID") else [*lacking, "X-Request-ID"]


@pytest.mark.parametrize(
    ("who", "method", "step"),
    [
        # What stands in front of all views sets them: a sample of the routes, all at night.
        *(("nobody", "get", 6), ("nobody", "post", 6), ("staff", "get", 4)),
        *(
            pytest.param(who, method, 1, marks=pytest.mark.nightly)
            for who, method in (("nobody", "get"), ("nobody", "post"), ("staff", "get"))
        ),
    ],
)
def test_every_route_has_the_headers(
    staff: User, settings: Settings, who: str, method: str, step: int
) -> None:
    settings.SECURE_HSTS_SECONDS = 31_536_000
    client = Client(raise_request_exception=False)
    if who == "staff":
        client.force_login(staff)
    known = sorted(set(addresses()) - {"/logout"})
    assert len(known) > 150
    faults = {}
    for address in known[::step]:
        answer = getattr(client, method)(address, secure=True)
        if lacking := missing(answer):
            faults[address] = lacking
        assert answer.status_code < 500 or answer.status_code == 503, address
    assert faults == {}


def test_what_carries_a_session_is_bound_to_this_host(client: Client, alice: User) -> None:
    client.post("/login", {"email": alice.email, "password": PASSWORD})
    cookie = client.cookies["sessionid"]
    assert (bool(cookie["httponly"]), cookie["samesite"], cookie["domain"]) == (True, "Lax", "")
