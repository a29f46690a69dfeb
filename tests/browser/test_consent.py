"""A person lets an app in, in a real browser under our policy: to the app's own address."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from tests.factories import PASSWORD
from tests.harness.browser_page import BrowserPage
from tests.harness.oauth_client import OAuthClient


class Callback(BaseHTTPRequestHandler):
    """The page of a program that listens on this machine."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>App</title><h1>Back in the app</h1>")

    def log_message(self, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def callback() -> Iterator[str]:
    """Where such a program waits; by another name than the platform's, so another origin."""
    # In threads: a browser may open a connection ahead, on which it then says nothing.
    server = ThreadingHTTPServer(("127.0.0.1", 0), Callback)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/callback"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def app(alice: User, live_server: LiveServer, callback: str) -> OAuthClient:
    made = OAuthClient(alice)
    made.asked = {"redirect_uri": callback, "resource": f"{live_server.url}/mcp"}
    return made


def faults_of(page: Page) -> list[str]:
    found: list[str] = []
    page.on("console", lambda line: found.append(line.text) if line.type == "error" else None)
    return found


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize(("button", "expected"), [("Connect", "code="), ("Cancel", "error=")])
def test_the_answer_reaches_the_app(
    browser: Browser,
    live_server: LiveServer,
    app: OAuthClient,
    script: bool,
    button: str,
    expected: str,
) -> None:
    page = browser.new_context(java_script_enabled=script).new_page()
    faults = faults_of(page)
    page.goto(live_server.url + app.address())
    page.get_by_label("Email").fill(app.user.email)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name=button, exact=True).click()
    expect(page.get_by_role("heading", name="Back in the app")).to_be_visible()
    assert expected in page.url and faults == []
    page.context.close()


def test_the_page_leads_to_that_one_address_only(
    context: BrowserContext,
    live_server: LiveServer,
    app: OAuthClient,
    log_in: Callable[[User], None],
) -> None:
    log_in(app.user)
    page = context.new_page()
    answer = page.goto(live_server.url + app.address())
    assert answer is not None
    origin = app.asked["redirect_uri"].removesuffix("/callback")
    assert f"form-action 'self' {origin};" in answer.headers["content-security-policy"] + ";"


def test_it_can_be_read_by_everybody(
    watch: BrowserPage, app: OAuthClient, log_in: Callable[[User], None]
) -> None:
    log_in(app.user)
    watch.go(app.address())
    watch.look_each("consent")
    expect(watch.page.get_by_role("heading", level=1)).to_have_text("Connect “Test agent”?")
    expect(watch.page.get_by_label("Read:")).to_be_checked()
    watch.page.get_by_label("Evolve:").uncheck()
