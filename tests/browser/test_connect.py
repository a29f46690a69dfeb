"""The connect page watches the door while somebody sets up a client elsewhere."""

from collections.abc import Callable

from playwright.sync_api import Browser, BrowserContext, expect
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from core.security.scopes import Principal
from mcp_bridge.protocol import client_activity
from tests.factories import make_key, make_playbook
from tests.harness.browser_page import BrowserPage

COVERED = """blocks => blocks.filter(block => {
    const button = block.querySelector("button").getBoundingClientRect();
    const range = document.createRange();
    range.selectNodeContents(block.querySelector("pre"));
    return [...range.getClientRects()].some(line => line.top < button.bottom
        && line.bottom > button.top && line.right > button.left && line.left < button.right);
}).map(block => block.textContent)"""


def arrive(user: User, **found: str) -> None:
    """What a call leaves in the database, whichever process served it."""
    by = Principal(user=user, scopes=frozenset(), api_key=make_key(user, name="laptop")[0])
    client_activity.record_activity(
        client_activity.RequestActivity(principal=by, client="claude-code 2.1", **found)
    )


def test_the_page_shows_an_mcp_call_within_three_seconds(
    watch: BrowserPage, alice: User, log_in: Callable[[User], None]
) -> None:
    log_in(alice)
    watch.open("/connect")
    status = watch.page.locator("#connection-status")
    expect(status).to_contain_text("waiting")
    # With a second for the answer. A machine with other work may take longer, and the test may not.
    expect(status).to_have_attribute("hx-trigger", "every 2s")
    arrive(alice, tool="create_playbook", refusal="insufficient_scope")
    expect(status).to_contain_text("was refused")
    arrive(alice, tool="get_playbook")
    expect(status).to_contain_text("claude-code 2.1 is connected")
    expect(status).to_contain_text("get_playbook")


def test_without_javascript_a_reload_shows_the_same(
    context: BrowserContext,
    browser: Browser,
    live_server: LiveServer,
    alice: User,
    log_in: Callable[[User], None],
) -> None:
    log_in(alice)
    scriptless = browser.new_context(java_script_enabled=False)
    scriptless.add_cookies(context.cookies())  # type: ignore[arg-type]  # what it gave out
    page = scriptless.new_page()
    page.goto(f"{live_server.url}/connect")
    page.get_by_role("link", name="Codex").click()
    expect(page.get_by_role("heading", name="Codex")).to_be_visible()
    arrive(alice, tool="get_playbook")
    page.get_by_role("link", name="Refresh").click()
    expect(page.locator("#connection-status")).to_contain_text("claude-code 2.1 is connected")
    scriptless.close()


def test_a_copy_button_covers_no_text_on_a_phone(
    watch: BrowserPage, alice: User, log_in: Callable[[User], None]
) -> None:
    make_playbook(alice)
    make_key(alice)
    log_in(alice)
    watch.page.set_viewport_size({"width": 390, "height": 844})
    for address in ("/connect", "/connect?client=cursor", "/start", "/docs/quickstart"):
        watch.go(address)
        blocks = watch.page.locator(".code-block:visible")
        expect(blocks.first).to_be_visible()
        assert blocks.evaluate_all(COVERED) == [], address
