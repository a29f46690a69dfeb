"""Checkout and billing portal as plain forms."""

from html import escape

from tests.harness.fake_stripe.world import Data, Declined, World, is_metered

Answer = tuple[int, str, str]
"""Status, page, and where it redirects to."""


def show(world: World, kind: str, pk: str) -> Answer:
    """Render a page."""
    with world.lock:
        if kind == "pay":
            return _pay_page(world.get(pk, "checkout.session"))
        return _portal_page(world, world.get(pk, "billing_portal.session"))


def send(world: World, kind: str, pk: str, form: Data) -> Answer:
    """Handle a submitted form."""
    with world.lock:
        if kind == "pay":
            return _pay(world, world.get(pk, "checkout.session"), form)
        return _manage(world, world.get(pk, "billing_portal.session"), form)


def _pay_page(session: Data, trouble: str = "") -> Answer:
    if session["status"] != "open":
        return 410, _page("This page is closed", ""), ""
    words = f"<p role=alert>{escape(trouble)}</p>" if trouble else ""
    form = '<label>Card <input name="card"></label> <button>Subscribe</button>'
    back = f'<a href="{escape(session["cancel_url"])}">Back</a>'
    status = 402 if trouble else 200
    return status, _page("Pay (fake Stripe)", f"{words}<form method=post>{form}</form>{back}"), ""


def _pay(world: World, session: Data, form: Data) -> Answer:
    if session["status"] != "open":
        return _pay_page(session)
    try:
        world.pay(session, form["card"].replace(" ", ""))
    except Declined:
        return _pay_page(session, "Your card was declined.")
    return 303, "", session["success_url"]


def _portal_page(world: World, session: Data) -> Answer:
    buttons = "".join(
        f"<form method=post><button name=do value={do}>{words}</button></form>"
        for do, words in {"cancel": "Cancel plan", "card": "Use a good card"}.items()
    )
    for price in world.every("price", active=True):
        name = escape(str(price["lookup_key"]))
        buttons += (
            f"<form method=post><button name=price value={price['id']}>{name}</button></form>"
        )
    back = f'<a href="{escape(session["return_url"])}">Back</a>'
    return 200, _page("Portal (fake Stripe)", buttons + back), ""


def _manage(world: World, session: Data, form: Data) -> Answer:
    customer = session["customer"]
    running = [s for s in world.every("subscription", customer=customer) if not s["ended_at"]]
    # It shows all, and changes or cancels the one that is clicked: here by the form's `of`.
    wanted = form.get("of") == "overage"
    running = [s for s in running if is_metered(s) == wanted]
    if form.get("do") == "card":
        world.change_card(customer, form.get("card", "4242424242424242"))
    elif not running:
        return 409, _page("There is no plan", ""), ""
    elif form.get("do") == "cancel":
        world.cancel_at_end(running[0])
    elif is_metered(running[0]) or len(running[0]["items"]["data"]) > 1:
        return 409, _page("This plan can only be canceled", ""), ""
    else:
        portal = world.get(session["configuration"], "billing_portal.configuration")
        rules = portal["features"]["subscription_update"]
        world.change_price(running[0], world.get(form["price"], "price"), rules)
    return 303, "", session["return_url"]


def _page(title: str, body: str) -> str:
    return f"<!doctype html><html lang=en><title>{title}</title><h1>{title}</h1>{body}</html>"
