"""What is not ours: the models' endpoint, the mail server, Stripe."""

import json
import smtplib
from collections.abc import Callable
from http import HTTPStatus
from queue import Empty, Queue
from threading import Thread
from typing import Any

import httpx2
from django.conf import settings
from django.core.mail import get_connection

from billing.errors import PaymentUnavailable
from billing.models import Plan
from billing.stripe.gateway import stripe_api
from config.doctor.connection_errors import describe_connection_error
from config.doctor.findings import Finding, Options, failed, ok, skipped, warning

OPENAI = "https://api.openai.com/v1"
SECONDS, SPENDING_SECONDS = 15.0, 90.0
MOST_BYTES = 2 * 1024 * 1024
CAPS = ("max_completion_tokens", "max_tokens")
ADDRESS = "Is OPENAI_BASE_URL right (often /v1 is missing at its end)?"


class EndpointError(Exception):
    """The endpoint did not do what was asked; `finding` says it."""

    def __init__(self, detail: str, advice: str) -> None:
        super().__init__(detail)
        self.finding = failed(detail, advice)


def check_llm_endpoint(options: Options) -> Finding:
    """The endpoint answers, takes the key, and knows the models; tokens are spent only if asked."""
    if settings.ACE_ENGINE == "rules":
        return skipped("the rules engine asks no model")
    seconds = SPENDING_SECONDS if options.spend else SECONDS
    ask = _ask_for_words if options.spend else _ask_for_names
    return _in_time(seconds, lambda: _asked(ask))


def _in_time(seconds: float, look: Callable[[], Finding]) -> Finding:
    """What `look` found; httpx's own time-out begins anew with every byte of a slow server."""
    found: Queue[Finding] = Queue()
    Thread(target=lambda: found.put(look()), daemon=True).start()
    try:
        return found.get(timeout=seconds)
    except Empty:
        return failed(f"{_base()}: no whole answer within {seconds:.0f} s", ADDRESS)


def _asked(ask: Callable[[httpx2.Client], Finding]) -> Finding:
    try:
        with httpx2.Client(timeout=SECONDS, trust_env=False, headers=_headers()) as client:
            return ask(client)
    except EndpointError as refused:
        return refused.finding
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        advice = "Is OPENAI_BASE_URL right, and may this host reach it?"
        return failed(f"{_base()}: {describe_connection_error(error)}", advice)


def _headers() -> dict[str, str]:
    return {"Authorization": f"Bearer {settings.OPENAI_API_KEY}"}


def _base() -> str:
    return str(settings.OPENAI_BASE_URL or OPENAI).rstrip("/")


def _models() -> list[str]:
    names = (settings.ACE_REFLECTOR_MODEL, settings.ACE_CURATOR_MODEL, settings.ACE_GENERATOR_MODEL)
    return list(dict.fromkeys(names))


def _ask_for_names(client: httpx2.Client) -> Finding:
    status, answer = _request(client, "GET", "/models")
    if status == HTTPStatus.NOT_FOUND:
        return warning(
            f"{_base()} answers, but keeps no list of models",
            f"{ADDRESS} If it is, try one call for some tokens: manage.py doctor --spend",
        )
    _raise_for_status(status)
    rows = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        return failed(f"{_base()} answers with something that is no list of models", ADDRESS)
    known = {row.get("id") for row in rows if isinstance(row, dict)}
    missing = [name for name in _models() if name not in known]
    if missing:
        advice = "Set ACE_REFLECTOR_MODEL, ACE_CURATOR_MODEL, ACE_GENERATOR_MODEL to what it has."
        return failed(f"{_base()} does not list {', '.join(missing)}", advice)
    return ok(f"{_base()} takes the key and lists {', '.join(_models())}")


def _ask_for_words(client: httpx2.Client) -> Finding:
    for model in _models():
        _spend(client, model)
    return ok(f"{_base()} answered as {', '.join(_models())}")


def _spend(client: httpx2.Client, model: str) -> None:
    """One short answer of the model; an older endpoint knows the cap by another name."""
    asked = {"model": model, "messages": [{"role": "user", "content": "Say ok."}]}
    status = HTTPStatus.BAD_REQUEST
    for cap in CAPS:
        status, _ = _request(client, "POST", "/chat/completions", json=asked | {cap: 16})
        if status != HTTPStatus.BAD_REQUEST:
            break
    if status == HTTPStatus.NOT_FOUND:
        raise EndpointError(f"{_base()} does not know {model}", "Set ACE_*_MODEL to what it has.")
    _raise_for_status(status)


def _request(client: httpx2.Client, method: str, path: str, **body: Any) -> tuple[HTTPStatus, Any]:
    """(status, the JSON or nothing) of one try; no redirects, a bounded answer."""
    with client.stream(method, _base() + path, **body) as answer:
        read = bytearray()
        for piece in answer.iter_bytes():
            read += piece
            if len(read) > MOST_BYTES:
                raise EndpointError(f"{_base()} answers without end", ADDRESS)
    try:
        return HTTPStatus(answer.status_code), json.loads(read)
    except ValueError:
        status = answer.status_code
        return HTTPStatus(status) if status in set(HTTPStatus) else HTTPStatus.BAD_GATEWAY, None


def _raise_for_status(status: HTTPStatus) -> None:
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        raise EndpointError(
            f"{_base()} refuses the key", "Set OPENAI_API_KEY to one that is valid there."
        )
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        raise EndpointError(
            f"{_base()} is out of quota, or asked too often", "Look at your account there."
        )
    if status != HTTPStatus.OK:
        raise EndpointError(f"{_base()} answered {status.value}", ADDRESS)


def check_mail(options: Options) -> Finding:
    """The server takes our login; no letter is sent."""
    if not settings.EMAIL_BACKEND.endswith("smtp.EmailBackend"):
        if settings.LOCAL:
            return ok("letters are written to the server's output")
        advice = "Set EMAIL_URL: nobody gets a letter, so no password can be reset."
        return warning("letters are written to the server's output", advice)
    where = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    server = get_connection()
    try:
        server.open()
    except smtplib.SMTPAuthenticationError:
        return failed(f"{where} refuses the login", "Set user and password in EMAIL_URL.")
    except (smtplib.SMTPException, OSError) as error:
        advice = "Are host, port and smtp+tls or smtp+ssl in EMAIL_URL right?"
        return failed(f"{where}: {describe_connection_error(error)}", advice)
    finally:
        server.close()
    return ok(f"{where} takes our login")


def check_stripe(options: Options) -> Finding:
    """Stripe takes the key, and sells every plan that has a price."""
    if not settings.BILLING_ENABLED:
        return skipped("billing is off")
    keys = Plan.objects.filter(is_active=True).exclude(price_lookup_key="")
    wanted = list(keys.values_list("price_lookup_key", flat=True))
    try:
        missing = [key for key in wanted if stripe_api.find_price(key) is None]
    except PaymentUnavailable as error:
        return _judge_stripe(getattr(error.__cause__, "http_status", None))
    if missing:
        return failed(f"no price for {', '.join(missing)}", "Run manage.py billing_setup.")
    mode = "live" if settings.STRIPE_LIVE_MODE else "test"
    return ok(f"takes the {mode} key, sells {len(wanted)} plans")


def _judge_stripe(status: int | None) -> Finding:
    if status in {401, 403}:
        return failed("Stripe refuses the key", "Set STRIPE_SECRET_KEY to one of your account.")
    shown = f"Stripe answered {status}" if status else "Stripe does not answer"
    return failed(shown, "May this host reach api.stripe.com?")
