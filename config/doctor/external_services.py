"""Checks of the LLM endpoint, the mail server and Stripe."""

import smtplib

from django.conf import settings
from django.core.mail import get_connection

from billing.errors import PaymentUnavailable
from billing.models import Plan
from billing.stripe.gateway import stripe_api
from config.doctor import Finding, describe_error, failed, ok, warning
from evolution.engine.llm import LLMError
from evolution.worker.role_check import check_roles, list_models, operator_base_url

ADDRESS = "Check OPENAI_BASE_URL (often /v1 is missing at the end) and OPENAI_API_KEY."


def check_llm_endpoint(*, spend: bool) -> Finding:
    """The endpoint accepts the key and lists the models.

    With `spend` each role asks its own question instead, and the answer has to fit.
    """
    if settings.ACE_ENGINE == "rules":
        return Finding("skipped", "the rules engine calls no model")
    base = operator_base_url()
    if spend:
        return _call_roles(base)
    try:
        return _list_models(base)
    except LLMError as error:
        return failed(f"{base}: {error.message}", ADDRESS)


def _call_roles(base: str) -> Finding:
    found, tokens = check_roles(base)
    unfit = "; ".join(f"{role}: {why}" for role, why in found.items() if why)
    if unfit:
        return failed(unfit, "Try another model, or the settings in docs/LOCAL_MODELS.md.")
    return ok(f"{base} works as {', '.join(found)}; {tokens:,} tokens")


def _list_models(base: str) -> Finding:
    known = list_models(base)
    if known is None:
        return warning(
            f"{base} answers, but has no list of models",
            f"{ADDRESS} If they are correct, test with calls: manage.py doctor model --llm",
        )
    models = settings.ACE_REFLECTOR_MODEL, settings.ACE_CURATOR_MODEL, settings.ACE_GENERATOR_MODEL
    wanted = list(dict.fromkeys(models))
    missing = [name for name in wanted if name not in known]
    if missing:
        advice = "Set ACE_REFLECTOR_MODEL, ACE_CURATOR_MODEL, ACE_GENERATOR_MODEL to models it has."
        return failed(f"{base} does not list {', '.join(missing)}", advice)
    return ok(f"{base} accepts the key and lists {', '.join(wanted)}")


def check_mail() -> Finding:
    """The mail server accepts the login; no e-mail is sent."""
    if not settings.EMAIL_BACKEND.endswith("smtp.EmailBackend"):
        if settings.LOCAL:
            return ok("emails are written to the server's output")
        advice = "Set EMAIL_URL: without email no password can be reset."
        return warning("emails are written to the server's output", advice)
    where = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    server = get_connection()
    try:
        server.open()
    except smtplib.SMTPAuthenticationError:
        return failed(f"{where} rejects the login", "Set user and password in EMAIL_URL.")
    except (smtplib.SMTPException, OSError) as error:
        advice = "Check host, port and smtp+tls or smtp+ssl in EMAIL_URL."
        return failed(f"{where}: {describe_error(error)}", advice)
    finally:
        server.close()
    return ok(f"{where} accepts the login")


def check_stripe() -> Finding:
    """Stripe accepts the key and has a price for every plan that needs one."""
    if not settings.BILLING_ENABLED:
        return Finding("skipped", "billing is off")
    wanted = list(Plan.objects.paid().values_list("price_lookup_key", flat=True))
    try:
        missing = [key for key in wanted if stripe_api.find_price(key) is None]
    except PaymentUnavailable as error:
        status = getattr(error.__cause__, "http_status", None)
        if status in {401, 403}:
            advice = "Set STRIPE_SECRET_KEY to a key of your account."
            return failed("Stripe rejects the key", advice)
        shown = f"Stripe answered {status}" if status else "Stripe does not answer"
        return failed(shown, "Can this host reach api.stripe.com?")
    if missing:
        return failed(f"no price for {', '.join(missing)}", "Run manage.py billing_setup.")
    mode = "live" if settings.STRIPE_LIVE_MODE else "test"
    return ok(f"accepts the {mode} key, has prices of {len(wanted)} plans")
