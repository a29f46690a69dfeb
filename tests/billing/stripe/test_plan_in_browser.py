"""Checkout in Chromium, to Stripe's page and back, and every state of the plan page."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, expect
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from config.settings.billing import billing_settings
from tests.billing.stripe.test_plan_pages import STATE_TEXTS
from tests.browser.conftest import (
    CHROMIUM,
    base_url,
    browser_type_launch_args,
    log_in,
)
from tests.harness.browser_page import BrowserPage
from tests.harness.fake_stripe.server import FakeStripe
from tests.harness.fake_stripe.world import DECLINED, GOOD
from tests.harness.plans import set_usage, subscribe

__all__ = ["base_url", "browser_type_launch_args", "log_in"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(300),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]
Enter = Callable[[User], None]
FRESH: dict[str, Any] = {
    **dict.fromkeys(("period_start", "period_end", "grace_until", "trial_end")),
    **dict.fromkeys(("stripe_customer_id", "stripe_subscription_id"), ""),
    "cancel_at_period_end": False,
}


class TwoSites(BrowserPage):
    """Allows pages of the fake Stripe, which is another host."""

    provider = ""

    def _request(self, request: Request) -> None:
        if not request.url.startswith(self.provider):
            super()._request(request)

    def _response(self, response: Response) -> None:
        if not response.url.startswith(self.provider):
            super()._response(response)

    def _console(self, message: ConsoleMessage) -> None:
        if not message.location.get("url", "").startswith(self.provider):
            super()._console(message)

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name).first.click()

    def pay(self, card: str) -> None:
        self.page.locator("[name=card]").fill(card)
        self.press("Subscribe")


@pytest.fixture
def watch(page: Page, live_server: LiveServer, shop: FakeStripe) -> Iterator[TwoSites]:
    watching = TwoSites(page, live_server.url)
    watching.provider = shop.base
    # The content security policy was built at startup with the real Stripe's hosts.
    yield watching
    assert not watching.faults, "\n".join(watching.faults)


@pytest.fixture
def leading_there(settings: Any, shop: FakeStripe) -> None:
    """Allow forms to redirect to the fake Stripe."""
    allowed = billing_settings(
        key=settings.STRIPE_SECRET_KEY,
        api_base=shop.base,
        installed_apps=[],
        policy=settings.CONTENT_SECURITY_POLICY["DIRECTIVES"],
    )
    settings.CONTENT_SECURITY_POLICY = allowed["CONTENT_SECURITY_POLICY"]


def test_a_plan_is_chosen_declined_paid_confirmed_and_cancelled(
    watch: TwoSites, alice: User, log_in: Enter, shop: FakeStripe, leading_there: None
) -> None:
    log_in(alice)
    watch.go("/usage")
    watch.page.get_by_role("link", name="Plan", exact=True).click()
    heading = watch.page.get_by_role("heading", level=2).first
    expect(heading).to_have_text("Free plan")
    watch.press("Choose Scale")
    watch.page.get_by_role("link", name="Back").click()
    expect(watch.page.get_by_text("Nothing was charged")).to_be_visible()
    watch.press("Choose Scale")
    watch.pay(DECLINED)
    expect(watch.page.get_by_text("Your card was declined.")).to_be_visible()
    shop.fail(*[500] * 50)
    watch.pay(GOOD)
    expect(watch.page.get_by_text("Waiting for Stripe’s confirmation")).to_be_visible()
    watch.look_each("/billing waiting")
    shop.api.faults.clear()
    shop.deliver()
    expect(watch.page.get_by_text("You're on the Scale plan")).to_be_visible()
    watch.look_each("/billing paid")
    watch.press("Manage billing")
    watch.press("Cancel plan")
    shop.deliver()
    watch.go("/billing")
    expect(watch.page.get_by_text("You cancelled this plan.")).to_be_visible()
    watch.look_each("/billing with invoices")


def test_every_state_of_a_plan(watch: TwoSites, alice: User, log_in: Enter) -> None:
    log_in(alice)
    set_usage(alice, evolutions_used=41, tokens_used=1_000_000, tokens_held=8_000)
    for state, (fields, words) in STATE_TEXTS.items():
        subscribe(alice, "pro", **FRESH | fields)
        watch.go("/billing")
        expect(watch.page.get_by_text(words[:30]).first).to_be_visible()
        watch.look_each(f"/billing {state}")


def test_a_payment_can_be_refreshed_without_javascript(
    browser: Browser, live_server: LiveServer, alice: User, shop: FakeStripe
) -> None:
    client = Client()
    client.force_login(alice)
    context = browser.new_context(java_script_enabled=False)
    cookie = client.cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
    page = context.new_page()
    page.goto(f"{live_server.url}/billing?paid=1")
    subscribe(alice, "pro", **STATE_TEXTS["active"][0])
    page.get_by_role("link", name="Refresh").click()
    expect(page.get_by_text("You're on the Pro plan")).to_be_visible()
    context.close()
