"""Every page, at its narrowest and darkest: nothing goes wrong on any of them.

`make looks` looks at each in both themes at each width, with axe on every one.
"""

import os
import re
from collections.abc import Callable, Iterable

import pytest

from accounts.models import User
from tests.factories import make_user
from tests.harness.browser_page import BrowserPage
from tests.harness.page_urls import ADMIN, common_pages, own_pages, staff_pages
from tests.harness.sample_account import build_world

EVERY_LOOK = [("light", 360), ("dark", 1280), ("light", 1280), ("light", 800), ("dark", 360)]
# Each theme once and each width once, and axe, which takes half a second, in one of the two. By day
# it judges each page once: not its other filters, nor all that a new account has of them.
EVERY = bool(os.environ.get("ACE_EVERY_LOOK"))
LOOKS = EVERY_LOOK if EVERY else EVERY_LOOK[:2]
OURS = re.compile("edit|summary|customers|evolutionjob/.*change")
LogIn = Callable[[User], None]
pytestmark = [pytest.mark.timeout(300)]


def walk(
    watch: BrowserPage, addresses: Iterable[str], *, status: int = 200, axe_each: int = 1
) -> None:
    """Each page is loaded once, in the last look of the page before, and looked at in each."""
    looks = LOOKS
    for number, address in enumerate(addresses):
        watch.go(address, status=status)
        judged = "?" not in address and number % axe_each == 0
        for look in looks:
            watch.look_as(address, *look, axe=EVERY or (judged and look == looks[0]))
        # Back again: another size and another theme cost as much as a page's own scripts.
        looks = looks[::-1]


def test_the_owners_pages(watch: BrowserPage, alice: User, log_in: LogIn) -> None:
    world = build_world(alice)
    log_in(alice)
    pages = [*own_pages(world), world.starter.get_absolute_url()]
    walk(watch, (page for page in pages if not page.endswith("/export")))


def test_the_pages_that_everybody_has(watch: BrowserPage, alice: User, log_in: LogIn) -> None:
    build_world(alice)
    log_in(alice)
    walk(watch, common_pages())


def test_a_new_accounts_pages(watch: BrowserPage, charlie: User, log_in: LogIn) -> None:
    log_in(charlie)
    walk(watch, common_pages(), axe_each=2)


def test_public_pages_and_errors(watch: BrowserPage, transactional_db: None) -> None:
    walk(watch, ("/", "/login", "/register", "/docs/operations"))
    walk(watch, ("/no-such-page",), status=404)


def test_staffs_pages(watch: BrowserPage, alice: User, log_in: LogIn) -> None:
    """The admin is Django's: no error, no violation; its accessibility is not ours to judge."""
    build_world(alice)
    log_in(make_user("staff@example.org", is_staff=True, is_superuser=True))
    for address in ADMIN:
        watch.go(address)


def test_what_we_added_to_the_admin(watch: BrowserPage, alice: User, log_in: LogIn) -> None:
    """The operations panel, and the pages that ask before something changes, in every look."""
    world = build_world(alice)
    log_in(make_user("staff@example.org", is_staff=True, is_superuser=True))
    watch.preload = False
    walk(watch, ["/admin/", *(page for page in staff_pages(world) if OURS.search(page))])
