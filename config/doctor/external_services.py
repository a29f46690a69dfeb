"""Checks of the LLM endpoint, the mail server and Stripe."""

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
from evolution.worker.role_check import check_roles

OPENAI = "https://api.openai.com/v1"
SECONDS, SPENDING_SECONDS = 15.0, 90.0
MOST_BYTES = 2 * 1024 * 1024
CAPS = ("max_completion_tokens", "max_tokens")
ADDRESS = "Check OPENAI_BASE_URL (often /v1 is missing at the end)."


class EndpointError(Exception):
    """The endpoint failed the check; `finding` describes it."""

    def __init__(self, detail: str, advice: str) -> None:
        super().__init__(detail)
        self.finding = failed(detail, advice)


def check_llm_endpoint(options: Options) -> Finding:
    """The endpoint accepts the key and lists the models; with --spend, the models answer.

    With --llm each role asks its own question, and the answer has to fit.
    """
    if settings.ACE_ENGINE == "rules":
        return skipped("the rules engine calls no model")
    if options.llm:
        return _check_roles()
    seconds = SPENDING_SECONDS if options.spend else SECONDS
    check = _call_models if options.spend else _list_models
    return _in_time(seconds, lambda: _with_client(check))


def _check_roles() -> Finding:
    found, tokens = check_roles(_base())
    unfit = "; ".join(f"{role}: {why}" for role, why in found.items() if why)
    if unfit:
        return failed(unfit, "Try another model, or the settings in docs/LOCAL_MODELS.md.")
    return ok(f"{_base()} fits as {', '.join(found)}; {tokens:,} tokens")


def _in_time(seconds: float, check: Callable[[], Finding]) -> Finding:
    """The result of `check`; httpx's time-out restarts with every byte of a slow server."""
    found: Queue[Finding] = Queue()
    Thread(target=lambda: found.put(check()), daemon=True).start()
    try:
        return found.get(timeout=seconds)
    except Empty:
        return failed(f"{_base()}: no complete response within {seconds:.0f} s", ADDRESS)


def _with_client(check: Callable[[httpx2.Client], Finding]) -> Finding:
    try:
        with httpx2.Client(timeout=SECONDS, trust_env=False, headers=_headers()) as client:
            return check(client)
    except EndpointError as error:
        return error.finding
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        advice = "Check OPENAI_BASE_URL. Can this host reach it?"
        return failed(f"{_base()}: {describe_connection_error(error)}", advice)


def _headers() -> dict[str, str]:
    return {"Authorization": f"Bearer {settings.OPENAI_API_KEY}"}


def _base() -> str:
    return str(settings.OPENAI_BASE_URL or OPENAI).rstrip("/")


def _models() -> list[str]:
    names = (settings.ACE_REFLECTOR_MODEL, settings.ACE_CURATOR_MODEL, settings.ACE_GENERATOR_MODEL)
    return list(dict.fromkeys(names))


def _list_models(client: httpx2.Client) -> Finding:
    status, answer = _request(client, "GET", "/models")
    if status == HTTPStatus.NOT_FOUND:
        return warning(
            f"{_base()} answers, but has no list of models",
            f"{ADDRESS} If it is correct, test with a short call: manage.py doctor --spend",
        )
    _raise_for_status(status)
    rows = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        return failed(f"{_base()} returns something other than a list of models", ADDRESS)
    known = {row.get("id") for row in rows if isinstance(row, dict)}
    missing = [name for name in _models() if name not in known]
    if missing:
        advice = "Set ACE_REFLECTOR_MODEL, ACE_CURATOR_MODEL, ACE_GENERATOR_MODEL to models it has."
        return failed(f"{_base()} does not list {', '.join(missing)}", advice)
    return ok(f"{_base()} accepts the key and lists {', '.join(_models())}")


def _call_models(client: httpx2.Client) -> Finding:
    for model in _models():
        _spend(client, model)
    return ok(f"{_base()} answered as {', '.join(_models())}")


def _spend(client: httpx2.Client, model: str) -> None:
    """Make one short call; older endpoints have another name for the token cap."""
    request = {"model": model, "messages": [{"role": "user", "content": "Say ok."}]}
    status = HTTPStatus.BAD_REQUEST
    for cap in CAPS:
        status, _ = _request(client, "POST", "/chat/completions", json=request | {cap: 16})
        if status != HTTPStatus.BAD_REQUEST:
            break
    if status == HTTPStatus.NOT_FOUND:
        raise EndpointError(f"{_base()} does not know {model}", "Set ACE_*_MODEL to models it has.")
    _raise_for_status(status)


def _request(client: httpx2.Client, method: str, path: str, **body: Any) -> tuple[HTTPStatus, Any]:
    """The status and the JSON or None of one request; no redirects, a bounded response."""
    with client.stream(method, _base() + path, **body) as answer:
        read = bytearray()
        for piece in answer.iter_bytes():
            read += piece
            if len(read) > MOST_BYTES:
                raise EndpointError(f"{_base()} returns an endless response", ADDRESS)
    try:
        return HTTPStatus(answer.status_code), json.loads(read)
    except ValueError:
        status = answer.status_code
        return HTTPStatus(status) if status in set(HTTPStatus) else HTTPStatus.BAD_GATEWAY, None


def _raise_for_status(status: HTTPStatus) -> None:
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        raise EndpointError(f"{_base()} rejects the key", "Set OPENAI_API_KEY to a valid key.")
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        raise EndpointError(
            f"{_base()} reports quota or rate limit exceeded", "Check your account there."
        )
    if status != HTTPStatus.OK:
        raise EndpointError(f"{_base()} answered {status.value}", ADDRESS)


def check_mail(options: Options) -> Finding:
    """The mail server accepts the login; no e-mail is sent."""
    if not settings.EMAIL_BACKEND.endswith("smtp.EmailBackend"):
        if settings.LOCAL:
            return ok("e-mail is written to the server's output")
        advice = "Set EMAIL_URL: without e-mail no password can be reset."
        return warning("e-mail is written to the server's output", advice)
    where = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    server = get_connection()
    try:
        server.open()
    except smtplib.SMTPAuthenticationError:
        return failed(f"{where} rejects the login", "Set user and password in EMAIL_URL.")
    except (smtplib.SMTPException, OSError) as error:
        advice = "Check host, port and smtp+tls or smtp+ssl in EMAIL_URL."
        return failed(f"{where}: {describe_connection_error(error)}", advice)
    finally:
        server.close()
    return ok(f"{where} accepts the login")


def check_stripe(options: Options) -> Finding:
    """Stripe accepts the key and has a price for every plan that needs one."""
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
    return ok(f"accepts the {mode} key, has prices of {len(wanted)} plans")


def _judge_stripe(status: int | None) -> Finding:
    if status in {401, 403}:
        return failed("Stripe rejects the key", "Set STRIPE_SECRET_KEY to a key of your account.")
    shown = f"Stripe answered {status}" if status else "Stripe does not answer"
    return failed(shown, "Can this host reach api.stripe.com?")
