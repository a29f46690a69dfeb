"""Routes for subscriptions and cards, and the test clocks of `stripe_test_mode`."""

from tests.harness.fake_stripe.api import Api, Refused, route
from tests.harness.fake_stripe.world import FAILS_LATER, GOOD, Data

CARDS = {"pm_card_visa": GOOD, "pm_card_chargeCustomerFail": FAILS_LATER}


@route("POST", "test_helpers/test_clocks")
def make_clock(api: Api, sent: Data, pk: str) -> Data:
    return api.world.add("clock", "test_helpers.test_clock", status="ready", **sent)


@route("GET", "test_helpers/test_clocks/{id}")
def read_clock(api: Api, sent: Data, pk: str) -> Data:
    return api.world.get(pk, "test_helpers.test_clock")


@route("POST", "test_helpers/test_clocks/{id}/advance")
def advance_clock(api: Api, sent: Data, pk: str) -> Data:
    api.world.advance(int(sent["frozen_time"]) - api.world.now)
    return api.world.get(pk, "test_helpers.test_clock")


@route("DELETE", "test_helpers/test_clocks/{id}")
def delete_clock(api: Api, sent: Data, pk: str) -> Data:
    return {"id": pk, "object": "test_helpers.test_clock", "deleted": True}


@route("POST", "payment_methods/{id}/attach")
def attach_card(api: Api, sent: Data, pk: str) -> Data:
    api.world.cards[sent["customer"]] = CARDS[pk]
    return api.world.add("pm", "payment_method", customer=sent["customer"])


@route("POST", "customers/{id}")
def change_customer(api: Api, sent: Data, pk: str) -> Data:
    found = api.world.get(pk, "customer")
    found |= sent
    return found


@route("POST", "subscriptions")
def make_subscription(api: Api, sent: Data, pk: str) -> Data:
    price = api.world.get(sent["items"][0]["price"], "price")
    method = sent.get("default_payment_method", "")
    if price["unit_amount"] is None and not method:
        raise Refused(400, "no_payment_method")  # a checkout's card is its subscription's only
    return api.world.begin(sent["customer"], price, 0, method=method)


@route("GET", "subscriptions/{id}")
def read_subscription(api: Api, sent: Data, pk: str) -> Data:
    return api.world.get(pk, "subscription")


@route("DELETE", "subscriptions/{id}")
def cancel_subscription(api: Api, sent: Data, pk: str) -> Data:
    found = api.world.get(pk, "subscription")
    if found["status"] == "canceled":
        raise Refused(404, "resource_missing")
    if sent.get("invoice_now"):
        api.world.bill(found, **api.world.usage(found, api.world.now), collect=False)
    api.world.end(found)
    return found


@route("POST", "subscriptions/{id}")
def change_subscription(api: Api, sent: Data, pk: str) -> Data:
    found = api.world.get(pk, "subscription")
    match sent.get("trial_end"):
        case None:
            if found["status"] == "canceled":
                raise Refused(400, "subscription_canceled")
            found |= sent
            api.world.tell("customer.subscription.updated", found)
        case "now":
            api.world.end_trial(found)
        case end:
            found["trial_end"] = int(end)
            found["items"]["data"][0]["current_period_end"] = int(end)
            api.world.tell("customer.subscription.updated", found)
    return found


@route("POST", "invoices/{id}/finalize")
def finalize_invoice(api: Api, sent: Data, pk: str) -> Data:
    found = api.world.get(pk, "invoice")
    found["status"] = "open" if found["total"] else "paid"
    return found


@route("POST", "invoices/{id}/pay")
def pay_invoice(api: Api, sent: Data, pk: str) -> Data:
    found = api.world.get(pk, "invoice")
    if found["status"] != "open":
        raise Refused(400, "invoice_not_open")
    if found["customer"] not in api.world.cards:
        raise Refused(402, "card_declined", "card_error")
    if api.world.cards[found["customer"]] != GOOD:
        raise Refused(402, "card_declined", "card_error")
    api.world.change_card(found["customer"], api.world.cards[found["customer"]])
    return found


@route("GET", "events")
def list_events(api: Api, sent: Data, pk: str) -> Data:
    return api.page(list(reversed(api.world.events)), sent)
