"""A second factor in a real browser: an app without scripts, a passkey with them."""

import re

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from tests.factories import PASSWORD
from tests.harness.browser_page import BrowserPage
from tests.harness.mfa import set_up_totp, totp_code


def enter(watch: BrowserPage, user: User) -> None:
    watch.page.goto(watch.base + "/login")
    watch.page.get_by_label("Email").fill(user.email)
    watch.page.get_by_label("Password").fill(PASSWORD)
    watch.page.get_by_role("button", name="Log in").click()
    # Whoever goes on at once would take the answer, and with it the session, away.
    expect(watch.page).not_to_have_url(re.compile("/login$"))


def leave(page: Page) -> None:
    page.context.clear_cookies()


def test_an_app_from_setting_it_up_to_logging_in(watch: BrowserPage, alice: User) -> None:
    enter(watch, alice)
    watch.open("/settings/second-factor")
    watch.page.get_by_role("link", name="Set up app").click()
    expect(watch.page.locator("code.secret")).to_be_visible()
    watch.page.emulate_media(color_scheme="dark")
    # The code is black, with nothing behind it: a camera needs it on white.
    expect(watch.page.locator(".qr")).to_have_css("background-color", "rgb(255, 255, 255)")
    watch.look("set up an app")
    secret = watch.page.locator("code.secret").inner_text()
    watch.page.get_by_label("Authenticator code").fill(totp_code(secret))
    watch.page.get_by_role("button", name="Turn on").click()
    expect(watch.page.locator("#codes")).to_be_visible()
    # Not by axe: the toast that says so is still fading in.
    watch.look("recovery codes", axe=False)
    codes = watch.page.locator("#codes").inner_text().split()
    assert len(codes) == 10
    for rest in ("codes/new", "app/remove", "passkeys/new"):
        watch.open(f"/settings/second-factor/{rest}")
    leave(watch.page)
    enter(watch, alice)
    watch.look("the code page")
    watch.page.get_by_label("Code").fill(codes[0])
    watch.page.get_by_role("button", name="Log in").click()
    watch.page.wait_for_url(re.compile(r"/(start|playbooks)?$"))


def test_a_passkey_from_adding_it_to_logging_in(
    watch: BrowserPage, alice: User, live_server: LiveServer
) -> None:
    # A passkey belongs to a name: an address such as 127.0.0.1 cannot have one.
    watch.base = watch.base.replace("127.0.0.1", "localhost")
    debugger = watch.page.context.new_cdp_session(watch.page)
    debugger.send("WebAuthn.enable")
    key = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    debugger.send("WebAuthn.addVirtualAuthenticator", {"options": key})
    enter(watch, alice)
    watch.open("/settings/second-factor/passkeys/new")
    watch.page.get_by_role("button", name="Add passkey").click()
    watch.page.wait_for_url("**/settings/second-factor/codes")
    watch.open("/settings/second-factor/passkeys")
    leave(watch.page)
    enter(watch, alice)
    watch.look("the passkey page")
    watch.page.get_by_role("button", name="Use a passkey").click()
    watch.page.wait_for_url(re.compile(r"/(start|playbooks)?$"))


def test_the_pages_of_ones_account(watch: BrowserPage, alice: User) -> None:
    enter(watch, alice)
    for page in ("email", "llm-key", "export", "delete"):
        watch.open(f"/settings/{page}")


def test_required_mfa_setup_begins_with_an_email(watch: BrowserPage, alice: User) -> None:
    alice.second_factor_required = True
    alice.save()
    enter(watch, alice)
    watch.page.get_by_role("link", name="Set up app").click()
    expect(watch.page.get_by_role("heading", level=1)).to_have_text("Set up a second factor")
    watch.look_each("first factor")
    watch.page.get_by_role("button", name="Send link").click()
    expect(watch.page.get_by_text("We sent you an email.").first).to_be_visible()


@pytest.mark.browser_context_args(java_script_enabled=False)
def test_the_app_works_without_scripts(watch: BrowserPage, alice: User, settings: Settings) -> None:
    secret = set_up_totp(alice)
    enter(watch, alice)
    watch.page.get_by_label("Code").fill(totp_code(secret))
    watch.page.get_by_role("button", name="Log in").click()
    watch.page.wait_for_url(re.compile(r"/(start|playbooks)?$"))
