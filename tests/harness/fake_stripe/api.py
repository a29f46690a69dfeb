"""The REST routes of the fake Stripe that this platform calls; anything else is a 404."""

import copy
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from tests.harness.fake_stripe.world import DAY, Data, Missing, World

Route = Callable[["Api", Data, str], Data]
ROUTES: list[tuple[str, re.Pattern[str], Route]] = []


class Refused(Exception):
    """An error response."""

    def __init__(self, status: int, code: str, kind: str = "invalid_request_error") -> None:
        super().__init__(code)
        self.status = status
        self.body = {"error": {"type": kind, "code": code, "message": f"fake: {code}"}}


@dataclass(frozen=True)
class Gate:
    """Delays the next response of one path, so that it is outdated when it arrives."""

    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)


def route(method: str, path: str) -> Callable[[Route], Route]:
    def keep(function: Route) -> Route:
        pattern = re.compile("/v1/" + path.replace("{id}", "([^/]+)"))
        ROUTES.append((method, pattern, function))
        return function

    return keep


class Api:
    """Handles a request: API key, injected faults, idempotency, routing."""

    def __init__(self, world: World, base: str) -> None:
        self.world, self.base = world, base
        self.key = ""
        self.faults: list[int] = []
        self.calls: list[str] = []
        self.answers: dict[str, tuple[str, Data]] = {}
        self.gates: dict[str, Gate] = {}

    def answer(self, method: str, path: str, text: str, headers: Any) -> tuple[int, Data]:
        with self.world.lock:
            self.calls.append(f"{method} {path}")
            answer = self._answer(method, path, text, headers)
            gate = self.gates.pop(path, None)
        if gate is not None:
            gate.reached.set()
            gate.opened.wait(20)
        return answer

    def _answer(self, method: str, path: str, text: str, headers: Any) -> tuple[int, Data]:
        try:
            self._check(headers)
            return 200, self._once(method, path, text, headers.get("Idempotency-Key", ""))
        except Refused as refused:
            return refused.status, refused.body
        except Missing:
            return 404, Refused(404, "resource_missing").body

    def _check(self, headers: Any) -> None:
        if self.faults:
            status = self.faults.pop(0)
            raise Refused(status, "rate_limit" if status == 429 else "server", "api_error")
        if headers.get("Authorization") != f"Bearer {self.key}":
            raise Refused(401, "invalid_api_key")

    def _once(self, method: str, path: str, text: str, key: str) -> Data:
        if method == "POST" and not key:
            raise Refused(400, "no_idempotency_key")
        asked = f"{path} {text}"
        if key in self.answers:
            before, body = self.answers[key]
            if before != asked:
                raise Refused(400, "idempotency_key_in_use", "idempotency_error")
            return body
        body = copy.deepcopy(self._find(method, path)(nested(text)))
        if method == "POST":
            self.answers[key] = (asked, body)
        return body

    def _find(self, method: str, path: str) -> Callable[[Data], Data]:
        for known, pattern, function in ROUTES:
            if known == method and (fits := pattern.fullmatch(path)):
                pk = fits.group(1) if fits.groups() else ""
                return lambda sent: function(self, sent, pk)
        raise Refused(404, "unknown_route")

    def page(self, rows: list[Data], sent: Data) -> Data:
        most = int(sent.get("limit", 10))
        return {"object": "list", "data": rows[:most], "has_more": False, "url": "/"}


def nested(text: str) -> Data:
    """`items[0][price]=x&expand[]=y` as {"items": [{"price": "x"}], "expand": ["y"]}."""
    root: Data = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        first, *rest = re.findall(r"[^\[\]]+|\[\]", name.replace("[]", "[ ]").replace("[ ]", "[]"))
        here: Any = root
        for part, after in zip([first, *rest], [*rest, None], strict=True):
            if after is None:
                here[part] = True if value == "true" else False if value == "false" else value
            else:
                here = here.setdefault(part, {})
    listed: Data = _lists(root)
    return listed


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {name: _lists(part) for name, part in value.items()}
    if inner and all(name.isdigit() or name == "[]" for name in inner):
        return list(inner.values())
    return inner


@route("POST", "customers")
def create_customer(api: Api, sent: Data, pk: str) -> Data:
    return api.world.add("cus", "customer", **sent)


@route("GET", "customers/{id}")
def fetch_customer(api: Api, sent: Data, pk: str) -> Data:
    return api.world.get(pk, "customer")


@route("DELETE", "customers/{id}")
def delete_customer(api: Api, sent: Data, pk: str) -> Data:
    api.world.delete_customer(api.world.get(pk, "customer"))
    return {"id": pk, "object": "customer", "deleted": True}


@route("GET", "products")
def list_products(api: Api, sent: Data, pk: str) -> Data:
    return api.page([p for p in api.world.every("product") if p["id"] in sent["ids"]], sent)


@route("GET", "products/{id}")
def read_product(api: Api, sent: Data, pk: str) -> Data:
    return api.world.get(pk, "product")


@route("POST", "products")
def make_product(api: Api, sent: Data, pk: str) -> Data:
    if sent["id"] in api.world.objects:
        raise Refused(400, "resource_already_exists")
    return api.world.add("prod", "product", active=True, **sent)


@route("GET", "prices")
def list_prices(api: Api, sent: Data, pk: str) -> Data:
    rows = [p for p in api.world.every("price") if p["lookup_key"] in sent["lookup_keys"]]
    return api.page([p for p in rows if p["active"] or "active" not in sent], sent)


@route("POST", "prices")
def make_price(api: Api, sent: Data, pk: str) -> Data:
    for other in api.world.every("price", lookup_key=sent["lookup_key"]):
        if not sent.pop("transfer_lookup_key", False):
            raise Refused(400, "lookup_key_taken")
        other["lookup_key"] = None
    sent.pop("transfer_lookup_key", None)
    amount = int(sent["unit_amount"]) if "unit_amount" in sent else None
    fields = sent | {"active": True, "unit_amount": amount, "nickname": None}
    return api.world.add("price", "price", **fields)


@route("GET", "billing/meters")
def list_meters(api: Api, sent: Data, pk: str) -> Data:
    return api.page(api.world.every("billing.meter", status=sent["status"]), sent)


@route("POST", "billing/meters")
def make_meter(api: Api, sent: Data, pk: str) -> Data:
    if api.world.every("billing.meter", event_name=sent["event_name"], status="active"):
        raise Refused(400, "meter_exists")
    return api.world.add("mtr", "billing.meter", status="active", **sent)


@route("POST", "billing/meter_events")
def make_meter_event(api: Api, sent: Data, pk: str) -> Data:
    """Taken once for an identifier within a day, and within 35 days of the usage."""
    now, said, at = api.world.now, sent["identifier"], int(sent["timestamp"])
    for known in api.world.every("billing.meter_event", identifier=said):
        if now - known["created"] < DAY:
            refused = Refused(400, "invalid")
            refused.body["error"]["message"] = f"An event already exists with identifier {said}."
            raise refused
    if not now - 35 * DAY < at < now + 300 or not int(sent["payload"]["value"]):
        raise Refused(400, "timestamp")
    fields = sent | {"timestamp": at, "status": "counted"}
    return api.world.add("mev", "billing.meter_event", **fields)


@route("GET", "checkout/sessions")
def list_sessions(api: Api, sent: Data, pk: str) -> Data:
    return api.page(api.world.every("checkout.session", customer=sent["customer"]), sent)


@route("POST", "checkout/sessions")
def make_session(api: Api, sent: Data, pk: str) -> Data:
    api.world.get(sent["customer"], "customer")
    sent.setdefault("subscription_data", {})
    made = api.world.add("cs", "checkout.session", status="open", **sent)
    made["url"] = f"{api.base}/pay/{made['id']}"
    return made


@route("POST", "checkout/sessions/{id}/expire")
def expire_session(api: Api, sent: Data, pk: str) -> Data:
    session = api.world.get(pk, "checkout.session")
    if session["status"] != "open":
        raise Refused(400, "session_not_open")
    session |= {"status": "expired", "url": None}
    return session


@route("GET", "subscriptions")
def list_subscriptions(api: Api, sent: Data, pk: str) -> Data:
    if api.world.get(sent["customer"], "customer").get("deleted"):
        raise Missing(sent["customer"])
    rows = copy.deepcopy(api.world.every("subscription", customer=sent["customer"]))
    for row in rows:
        for name in (path.removeprefix("data.") for path in sent.get("expand", [])):
            row[name] = api.world.objects.get(row.get(name) or "", row.get(name))
    return api.page(rows, sent)


@route("GET", "invoices")
def list_invoices(api: Api, sent: Data, pk: str) -> Data:
    same = {name: sent[name] for name in ("status", "customer") if name in sent}
    rows = api.world.every("invoice", **same)
    if of := sent.get("subscription"):
        rows = [row for row in rows if row["parent"]["subscription_details"]["subscription"] == of]
    return api.page(rows, sent)


@route("GET", "webhook_endpoints")
def list_endpoints(api: Api, sent: Data, pk: str) -> Data:
    rows = [copy.deepcopy(row) for row in api.world.every("webhook_endpoint")]
    for row in rows:
        del row["secret"]  # revealed only at creation
    return api.page(rows, sent)


@route("POST", "webhook_endpoints")
def make_endpoint(api: Api, sent: Data, pk: str) -> Data:
    made = api.world.add("we", "webhook_endpoint", status="enabled", api_version=None, **sent)
    made["secret"] = f"whsec_{made['id']}"
    return made


@route("POST", "webhook_endpoints/{id}")
def change_endpoint(api: Api, sent: Data, pk: str) -> Data:
    found = api.world.get(pk, "webhook_endpoint")
    found |= sent
    return {name: value for name, value in found.items() if name != "secret"}


@route("DELETE", "webhook_endpoints/{id}")
def delete_endpoint(api: Api, sent: Data, pk: str) -> Data:
    api.world.get(pk, "webhook_endpoint")
    del api.world.objects[pk]
    return {"id": pk, "object": "webhook_endpoint", "deleted": True}


@route("GET", "billing_portal/configurations")
def list_configurations(api: Api, sent: Data, pk: str) -> Data:
    return api.page(api.world.every("billing_portal.configuration"), sent)


@route("POST", "billing_portal/configurations")
def make_configuration(api: Api, sent: Data, pk: str) -> Data:
    return api.world.add("bpc", "billing_portal.configuration", active=True, **sent)


@route("POST", "billing_portal/configurations/{id}")
def change_configuration(api: Api, sent: Data, pk: str) -> Data:
    found = api.world.get(pk, "billing_portal.configuration")
    found |= sent
    return found


@route("POST", "billing_portal/sessions")
def make_portal(api: Api, sent: Data, pk: str) -> Data:
    api.world.get(sent["customer"], "customer")
    made = api.world.add("bps", "billing_portal.session", **sent)
    made["url"] = f"{api.base}/portal/{made['id']}"
    return made
