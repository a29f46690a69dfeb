"""Enrolment of the first second factor where one is required: the password alone is not enough.

Otherwise a thief of the password could enrol their own device. The second proof is a link sent by
e-mail, or printed by an operator with `manage.py enrol_second_factor`.
"""

from django.core import signing
from django.utils.crypto import constant_time_compare, salted_hmac

from accounts.mfa.second_factor import has_second_factor
from accounts.models import User
from core.audit import record
from core.emails import send_email
from core.errors import Invalid
from core.ratelimit.limits import consume_rate_limit

SALT, AGE = "accounts.enrol", 3600


def request_enrolment(*, user: User, site: str) -> None:
    """E-mail a link to the set-up to the account's address. Raises RateLimited."""
    consume_rate_limit("send_mail", str(user.pk))
    record(action="request_enrolment", by=user, subject=user)
    send_email(
        "second_factor_enrolment", to=user.email, site=site, link=site + enrolment_path(user)
    )


def enrolment_path(user: User) -> str:
    """The path at which the logged-in user can set up the first factor within an hour."""
    token = signing.dumps([str(user.pk), _credentials_digest(user)], salt=SALT)
    return f"/settings/second-factor/first/{token}"


def check_enrolment(*, user: User, token: str) -> None:
    """Check that the link is the user's, is recent, and no factor exists. Raises Invalid."""
    try:
        pk, digest = signing.loads(token, salt=SALT, max_age=AGE)
    except (signing.BadSignature, ValueError, TypeError):
        raise _invalid_link() from None
    fits = pk == str(user.pk) and constant_time_compare(digest, _credentials_digest(user))
    if not fits or has_second_factor(user):
        raise _invalid_link()
    record(action="confirm_enrolment", by=user, subject=user)


def _credentials_digest(user: User) -> str:
    """Changes with the password and the e-mail, which invalidates earlier links."""
    return salted_hmac(SALT, f"{user.password} {user.email}").hexdigest()[:20]


def _invalid_link() -> Invalid:
    return Invalid("This link is invalid or has expired. Request a new one.")
