"""Verification of e-mail addresses by signed links."""

from django.core import signing
from django.utils.crypto import constant_time_compare, salted_hmac

from accounts.models import User
from core.emails import send_email
from core.errors import Invalid

SALT, AGE = "accounts.verify", 3 * 86_400


def send_verification_email(user: User, *, to: str, site: str) -> None:
    """E-mail a link that verifies the address `to`."""
    token = signing.dumps([str(user.pk), to, _password_digest(user)], salt=SALT)
    send_email("verify_email", to=to, site=site, link=f"{site}/verify/{token}")


def read_verification_token(token: str) -> tuple[User, str]:
    """The user and the address of a link. Raises Invalid if it is old, used or forged."""
    try:
        pk, email, digest = signing.loads(token, salt=SALT, max_age=AGE)
    except (signing.BadSignature, ValueError, TypeError):
        raise _invalid_link() from None
    user = User.objects.filter(pk=pk, is_active=True).first()
    wanted = user is not None and (
        email == user.pending_email or (email == user.email and not user.email_verified)
    )
    if user is None or not wanted or not constant_time_compare(digest, _password_digest(user)):
        raise _invalid_link()
    return user, email


def _password_digest(user: User) -> str:
    """Changes with the password, which invalidates earlier links."""
    return salted_hmac(SALT, user.password).hexdigest()[:20]


def _invalid_link() -> Invalid:
    return Invalid("This link is invalid or has expired. Request a new one.")
