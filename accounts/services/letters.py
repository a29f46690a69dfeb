"""Proofs that an address is a person's: links that letters carry."""

from django.core import signing
from django.utils.crypto import constant_time_compare, salted_hmac

from accounts.errors import Invalid
from accounts.mail import send_letter
from accounts.models import User

SALT, AGE = "accounts.verify", 3 * 86_400


def send_verification(user: User, *, to: str, site: str) -> None:
    """A letter with a link that proves `to` is on its way."""
    token = signing.dumps([str(user.pk), to, _mark(user)], salt=SALT)
    send_letter("verify", to=to, site=site, link=f"{site}/verify/{token}")


def read_verification(token: str) -> tuple[User, str]:
    """Whose address a link proves. Raises Invalid for an old, spent or forged one."""
    try:
        pk, email, mark = signing.loads(token, salt=SALT, max_age=AGE)
    except (signing.BadSignature, ValueError, TypeError):
        raise _useless() from None
    user = User.objects.filter(pk=pk, is_active=True).first()
    wanted = user is not None and (
        email == user.pending_email or (email == user.email and not user.email_verified)
    )
    if user is None or not wanted or not constant_time_compare(mark, _mark(user)):
        raise _useless()
    return user, email


def _mark(user: User) -> str:
    """Changes with the password: a link of before is void then."""
    return salted_hmac(SALT, user.password).hexdigest()[:20]


def _useless() -> Invalid:
    return Invalid("This link is too old, was used already, or is not whole. Ask for a new one.")
