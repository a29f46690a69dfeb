"""Delivery of webhook events: in any order, duplicated and forged on request."""

import hashlib
import hmac
import json
import random
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import httpx2

from tests.harness.fake_stripe.world import Data

FORGERIES = ("other secret", "too old", "changed body", "no signature", "nonsense")


@dataclass(frozen=True)
class Sent:
    """One event to deliver; `forgery` names what is wrong with it, empty for a valid one."""

    event: Data
    url: str
    secret: str
    forgery: str = ""
    status: int = 0


def plan(
    events: Iterable[Data],
    endpoints: list[Data],
    *,
    copies: int,
    bad_share: float,
    rng: random.Random,
) -> list[Sent]:
    """Each event `copies` times for each subscribed endpoint, some forged, in random order."""
    sent = []
    for event in events:
        for endpoint in endpoints:
            if event["type"] in endpoint["enabled_events"]:
                one = Sent(event, endpoint["url"], endpoint["secret"])
                sent += [one] * copies
    forged = [
        Sent(one.event, one.url, one.secret, rng.choice(FORGERIES))
        for one in rng.sample(sent, round(len(sent) * bad_share))
    ]
    mixed = sent + forged
    if copies > 1 or forged:
        rng.shuffle(mixed)
    return mixed


def deliver(sent: list[Sent], *, at_once: int = 1) -> list[Sent]:
    """Send each event; returns them with the status of the response."""
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(_post, sent))


def _post(one: Sent) -> Sent:
    body = json.dumps(one.event).encode()
    headers = {"Content-Type": "application/json; charset=utf-8"}
    signature = sign(body, one)
    if signature:
        headers["Stripe-Signature"] = signature
    if one.forgery == "changed body":
        body = body.replace(b'"livemode"', b'"livemode" ')
    answer = httpx2.post(one.url, content=body, headers=headers, timeout=30, trust_env=False)
    return replace(one, status=answer.status_code)


def sign(body: bytes, one: Sent) -> str:
    """The signature header, valid or forged."""
    if one.forgery == "no signature":
        return ""
    if one.forgery == "nonsense":
        return "t=yesterday,v1=0"
    at = int(time.time()) - (900 if one.forgery == "too old" else 0)
    secret = "whsec_guessed" if one.forgery == "other secret" else one.secret
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"
