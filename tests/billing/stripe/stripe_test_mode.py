"""A subscription's lifecycle in the test mode of the real Stripe: `make stripe-test-mode`.

Needs STRIPE_SECRET_KEY=sk_test_… of an account of yours, and a way out to api.stripe.com. Nobody
pays anything. It makes products, prices and a portal configuration (they stay, as `billing_setup`
leaves them), and one customer on a test clock, which it deletes at the end. The database is a
temporary one.

A program cannot fill in Stripe's pay page: the subscription begins by the API instead, with
Stripe's test cards. Events are fetched, signed here, and posted to our webhook, duplicated and in
random order.
"""

import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

SECRET = "whsec_" + "of the test mode run".replace(" ", "_")
GOOD, FAILS = "pm_card_visa", "pm_card_chargeCustomerFail"
HOURS = 3 * 3600
PATIENCE = 180
AWAKE = threading.Event()


class Life:
    """One user with one customer on one test clock."""

    def __init__(self, api: Any) -> None:
        from accounts.models import User  # noqa: PLC0415 - after django.setup()
        from billing.models import BillingAccount  # noqa: PLC0415 - as above
        from billing.stripe.gateway import mirror  # noqa: PLC0415 - as above

        self.api, self.began = api, int(time.time()) - 60
        self.user = User.objects.create_user("test-mode@example.org", "correct horse battery")
        self.clock = api.test_helpers.test_clocks.create({"frozen_time": int(time.time())}).id
        made = api.customers.create({"email": self.user.email, "test_clock": self.clock})
        self.customer = made.id
        self.account = BillingAccount.objects.create(
            user=self.user, stripe_customer_id=self.customer
        )
        mirror.save_customer(self.customer)

    def card(self, card: str) -> None:
        found = self.api.payment_methods.attach(card, {"customer": self.customer})
        settings = {"invoice_settings": {"default_payment_method": found.id}}
        self.api.customers.update(self.customer, settings)

    def subscription(self) -> Any:
        listed = self.api.subscriptions.list({"customer": self.customer, "status": "all"})
        return listed.data[0]

    def pass_the_end_of_the_period(self) -> None:
        """Advance past the renewal and the hour after which Stripe charges its invoice."""
        item = self.subscription().to_dict()["items"]["data"][0]
        to = item["current_period_end"] + HOURS
        self.api.test_helpers.test_clocks.advance(self.clock, {"frozen_time": to})
        wait_until(lambda: self.api.test_helpers.test_clocks.retrieve(self.clock).status == "ready")

    def hear(self) -> None:
        """Stripe's events of this run, three copies each in random order, and one forgery."""
        from django.test import Client  # noqa: PLC0415 - as above
        from stripe import WebhookSignature  # noqa: PLC0415 - as above

        listed = self.api.events.list({"created": {"gte": self.began}, "limit": 100})
        events = [json.dumps(event.to_dict(for_json=True)) for event in listed.data] * 3
        random.Random(7).shuffle(events)
        client = Client(headers={"host": "localhost"})
        for number, body in enumerate(events):
            secret = SECRET if number else "whsec_guessed"
            signature = WebhookSignature.generate_signature_header(body, secret)
            answer = client.post(
                "/api/v1/billing/webhook",
                body,
                content_type="application/json",
                headers={"Stripe-Signature": signature},
            )
            assert answer.status_code == (200 if number else 400), answer.content
        self.account.refresh_from_db()

    def says(self, status: str, plan: str) -> None:
        from billing.plans.entitlements import plan_of  # noqa: PLC0415 - as above

        found = (self.account.status, getattr(plan_of(self.user), "slug", ""))
        assert found == (status, plan), found


def live(life: Life) -> Iterator[str]:
    """Run all steps; yields what each has verified."""
    yield from subscribe(life)
    yield from renew(life)
    yield from leave(life)


def subscribe(life: Life) -> Iterator[str]:
    from billing.errors import AlreadySubscribed  # noqa: PLC0415 - as above
    from billing.stripe import subscriptions  # noqa: PLC0415 - as above
    from billing.stripe.gateway import stripe_api  # noqa: PLC0415 - as above

    site = "https://ace.example.org"
    page = subscriptions.subscribe(user=life.user, plan="scale", site=site)
    assert page == subscriptions.subscribe(user=life.user, plan="scale", site=site)
    yield f"one pay page, asked for twice, at {page.split('/')[2]}"
    life.card(GOOD)
    price = stripe_api.find_price("ace_scale_monthly")
    assert price is not None
    items = [{"price": price["id"]}]
    life.api.subscriptions.create({"customer": life.customer, "items": items})
    life.hear()
    life.says("active", "scale")
    yield "paid: the plan is there"
    try:
        subscriptions.subscribe(user=life.user, plan="scale", site=site)
        raise AssertionError("a second subscription was offered")
    except AlreadySubscribed:
        yield "a second subscription is refused"
    portal = subscriptions.open_portal(user=life.user, site=site)
    yield f"the portal opens at {portal.split('/')[2]}"


def renew(life: Life) -> Iterator[str]:
    """Once paid, once declined and then paid with a new card."""
    first = life.account.period_end
    life.pass_the_end_of_the_period()
    life.hear()
    life.says("active", "scale")
    assert life.account.period_start == first, (life.account.period_start, first)
    yield "renewed: the next period begins where the first ended"
    life.card(FAILS)
    life.pass_the_end_of_the_period()
    life.hear()
    assert life.account.status == "past_due", life.account.status
    assert life.account.grace_until is not None
    yield f"a renewal failed: past due, in grace until {life.account.grace_until:%-d %b %Y}"
    life.card(GOOD)
    unpaid = life.api.invoices.list({"customer": life.customer, "status": "open"}).data
    life.api.invoices.pay(unpaid[0].id)
    life.hear()
    life.says("active", "scale")
    yield "a new card: active again"


def leave(life: Life) -> Iterator[str]:
    """The subscription ends, then the account."""
    from accounts.services.personal_data import delete_account  # noqa: PLC0415 - as above
    from billing.stripe import sync  # noqa: PLC0415 - as above

    life.api.subscriptions.update(life.subscription().id, {"cancel_at_period_end": True})
    life.hear()
    assert life.account.cancel_at_period_end
    life.pass_the_end_of_the_period()
    life.hear()
    life.says("canceled", "free")
    yield "cancelled: the default plan applies once the period is over"
    delete_account(user=life.user)
    sync.resync_stale_account()
    assert life.api.customers.retrieve(life.customer).deleted
    yield "the account is deleted, and the customer with it"


def wait_until(is_so: Callable[[], bool]) -> None:
    """Test clocks take some seconds to advance."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, "the test clock does not get ready"
        AWAKE.wait(2)


@contextmanager
def temporary_server() -> Iterator[None]:
    """Django with billing on, over a temporary database."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "ACE_LOCAL": "true",
            "ACE_DATA_DIR": folder,
            "BILLING_ENABLED": "true",
            "DATABASE_URL": "",
            "DJANGO_SETTINGS_MODULE": "tests.billing.stripe.settings_without_migrations",
            "STRIPE_WEBHOOK_SECRET": SECRET,
        }
        import django  # noqa: PLC0415 - the environment had to be set first

        django.setup()
        from django.core.management import call_command  # noqa: PLC0415 - as above

        from tests.harness.standard_plans import load_standard_plans  # noqa: PLC0415 - as above

        call_command("migrate", run_syncdb=True, verbosity=0)
        load_standard_plans()
        call_command("billing_setup", price=["pro=29", "scale=99"], no_webhook=True)
        yield


def main() -> None:
    if not os.environ.get("STRIPE_SECRET_KEY", "").startswith(("sk_test_", "rk_test_")):
        sys.exit("Set STRIPE_SECRET_KEY to a key of Stripe's test mode (sk_test_…).")
    with temporary_server():
        from billing.stripe.gateway import stripe_api  # noqa: PLC0415 - as above

        life = Life(stripe_api.client().v1)
        try:
            for seen in live(life):
                print(f"{datetime.now(UTC):%H:%M:%S} {seen}", flush=True)
        finally:
            life.api.test_helpers.test_clocks.delete(life.clock)
    print("All of it is as it should be.")


if __name__ == "__main__":
    main()
