"""Every page, at its narrowest and darkest: nothing goes wrong on any of them.

`make looks` walks through both themes at each width, with axe on every page of each.
"""

import os
import re
from collections.abc import Callable
from typing import Any

import pytest

from accounts.models import User
from tests.browser.watch import Watch
from tests.factories import make_user
from tests.pages.addresses import ADMIN, common_pages, own_pages, staff_pages
from tests.pages.world import build_world

EVERY_LOOK = [("light", 1280), ("light", 800), ("light", 360), ("dark", 1280), ("dark", 360)]
# Each theme once and each width once: a page costs a second in every look.
LOOKS = EVERY_LOOK if os.environ.get("ACE_EVERY_LOOK") else [("light", 360), ("dark", 1280)]


@pytest.fixture(params=LOOKS, ids=[f"{scheme}-{width}" for scheme, width in LOOKS])
def browser_context_args(
    browser_context_args: dict[str, Any], request: pytest.FixtureRequest
) -> dict[str, Any]:
    scheme, width = request.param
    viewport = {"width": width, "height": 800}
    return browser_context_args | {"color_scheme": scheme, "viewport": viewport}


@pytest.mark.timeout(300)
def test_the_owners_pages(watch: Watch, alice: User, log_in: Callable[[User], None]) -> None:
    world = build_world(alice)
    log_in(alice)
    for address in [*common_pages(), *own_pages(world), world.starter.get_absolute_url()]:
        if not address.endswith("/export"):
            watch.open(address)


def test_public_pages_and_errors(watch: Watch, transactional_db: None) -> None:
    for address in ("/", "/login", "/register"):
        watch.open(address)
    watch.open("/no-such-page", status=404)


def test_a_new_accounts_pages(watch: Watch, charlie: User, log_in: Callable[[User], None]) -> None:
    log_in(charlie)
    for address in common_pages():
        watch.open(address)


@pytest.mark.timeout(300)
def test_staffs_pages(
    watch: Watch, alice: User, log_in: Callable[[User], None], looks_once: None
) -> None:
    """The admin is Django's: no error, no violation; its accessibility is not ours to judge."""
    build_world(alice)
    log_in(make_user("staff@example.org", is_staff=True, is_superuser=True))
    for address in ADMIN:
        watch.page.goto(watch.base + address)


@pytest.mark.timeout(300)
def test_what_we_added_to_the_admin(
    watch: Watch, alice: User, log_in: Callable[[User], None]
) -> None:
    """The operations panel, and the pages that ask before something changes, in every look."""
    world = build_world(alice)
    log_in(make_user("staff@example.org", is_staff=True, is_superuser=True))
    watch.preload = False
    for address in ["/admin/", *(page for page in staff_pages(world) if OURS.search(page))]:
        watch.open(address)


OURS = re.compile("roll-back|edit|evolutionjob/.*change")


@pytest.fixture
def looks_once(browser_context_args: dict[str, Any]) -> None:
    scheme, width = browser_context_args["color_scheme"], browser_context_args["viewport"]["width"]
    if (scheme, width) != LOOKS[0]:
        pytest.skip("once is enough for pages that Django made")
