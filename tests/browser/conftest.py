"""Debian's Chromium, and a page that remembers everything that went wrong on it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from tests.factories import make_user
from tests.harness.browser_page import BrowserPage
from tests.harness.clients import log_in_client
from tests.run import find_browser

# Playwright runs an event loop on the test's thread; Django would refuse the ORM there.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

# A machine with other work takes long over a page; what never comes is found out all the same.
expect.set_options(timeout=20_000)
CHROMIUM = find_browser()
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    # A process for each page costs more than most tests do on it.
    "--renderer-process-limit=1",
]

STORED = "local_storage,indexeddb,cache_storage,service_workers"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None:
                item.add_marker(pytest.mark.skip(reason="there is no Chromium on this machine"))


@pytest.fixture(scope="session")
def base_url() -> str:
    """Not pytest-base-url's: pytest 9 warns of how that is made, and warnings are errors."""
    return ""


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    return {"executable_path": CHROMIUM, "args": ARGS}


@pytest.fixture(scope="session")
def contexts(browser: Browser) -> dict[str, BrowserContext]:
    """The contexts that tests share, by their settings."""
    return {}


@pytest.fixture
def context(
    browser: Browser, contexts: dict[str, BrowserContext], browser_context_args: dict[str, Any]
) -> Iterator[BrowserContext]:
    """An empty context. It is emptied and kept, as are its files, its process and compiled scripts.

    An empty page stays open in it, since a process ends with its last page.
    """
    key = repr(sorted(browser_context_args.items()))
    if key not in contexts:
        contexts[key] = browser.new_context(**browser_context_args)
        contexts[key].new_page()
    context = contexts[key]
    kept = context.pages[0]
    yield context
    for page in context.pages[1:]:
        page.close()
    context.unroute_all()
    context.clear_cookies()
    storage = context.new_cdp_session(kept)
    storage.send("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": STORED})
    storage.detach()


@pytest.fixture
def alice(transactional_db: None) -> User:
    """Committed rows: the server answers on a thread of its own."""
    return make_user("alice@example.org")


@pytest.fixture
def charlie(transactional_db: None) -> User:
    return make_user("charlie@example.org")


@pytest.fixture
def watch(page: Page, live_server: LiveServer) -> Iterator[BrowserPage]:
    """The page under watch; a test that ends with an unexplained fault fails."""
    watching = BrowserPage(page, live_server.url)
    yield watching
    assert not watching.faults, "\n".join(watching.faults)


@pytest.fixture
def log_in(context: BrowserContext, live_server: LiveServer) -> Callable[[User], None]:
    """Log somebody in without the form, by the session's cookie."""

    def enter(user: User) -> None:
        client = Client()
        log_in_client(client, user)
        cookie = client.cookies["sessionid"].value
        context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])

    return enter
