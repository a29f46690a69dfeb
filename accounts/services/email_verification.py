"""Proofs that an address is a person's: links that letters carry."""

from django.core import signing
from django.utils.crypto import constant_time_compare, salted_hmac

from accounts.models import User
from core.emails import send_email
from core.errors import Invalid

SALT, AGE = "accounts.verify", 3 * 86_400


def send_verification_email(user: User, *, to: str, site: str) -> None:
    """A letter with a link that proves `to` is on its way."""
    token = signing.dumps([str(user.pk), to, _password_digest(user)], salt=SALT)
    send_email("verify_email", to=to, site=site, link=f"{site}/verify/{token}")


def read_verification_token(token: str) -> tuple[User, str]:
    """Whose address a link proves. Raises Invalid for an old, spent or forged one."""
    try:
        pk, email, mark = signing.loads(token, salt=SALT, max_age=AGE)
    except (signing.BadSignature, ValueError, TypeError):
        raise _invalid_link() from None
    user = User.objects.filter(pk=pk, is_active=True).first()
    wanted = user is not None and (
        email == user.pending_email or (email == user.email and not user.email_verified)
    )
    if user is None or not wanted or not constant_time_compare(mark, _password_digest(user)):
        raise _invalid_link()
    return user, email


def _password_digest(user: User) -> str:
    """Changes with the password: a link of before is void then."""
    return salted_hmac(SALT, user.password).hexdigest()[:20]


def _invalid_link() -> Invalid:
    return Invalid("This link is too old, was used already, or is not whole. Ask for a new one.")
