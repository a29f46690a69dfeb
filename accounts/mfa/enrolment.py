"""The first second factor of somebody who must have one: a password alone does not set it up.

Else whoever stole the password of staff that never came would enrol a device of their own. The
mailbox is the other proof; an operator with a shell is one too (`manage.py enrol_second_factor`).
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
    """A letter with a link to the set-up is on its way to the account's address.

    Raises RateLimited.
    """
    consume_rate_limit("send_mail", str(user.pk))
    record(action="request_enrolment", by=user, subject=user)
    send_email(
        "second_factor_enrolment", to=user.email, site=site, link=site + enrolment_path(user)
    )


def enrolment_path(user: User) -> str:
    """Where the person, logged in, may set up the first second factor within an hour."""
    token = signing.dumps([str(user.pk), _credentials_digest(user)], salt=SALT)
    return f"/settings/second-factor/first/{token}"


def check_enrolment(*, user: User, token: str) -> None:
    """The link was made for this person, lately, and no factor is there yet. Raises Invalid."""
    try:
        pk, mark = signing.loads(token, salt=SALT, max_age=AGE)
    except (signing.BadSignature, ValueError, TypeError):
        raise _invalid_link() from None
    fits = pk == str(user.pk) and constant_time_compare(mark, _credentials_digest(user))
    if not fits or has_second_factor(user):
        raise _invalid_link()
    record(action="confirm_enrolment", by=user, subject=user)


def _credentials_digest(user: User) -> str:
    """Changes with the password and the address: a link of before is void then."""
    return salted_hmac(SALT, f"{user.password} {user.email}").hexdigest()[:20]


def _invalid_link() -> Invalid:
    return Invalid("This link is too old, was used, or is somebody else's. Ask for a new one.")
