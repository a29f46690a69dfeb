"""Signed tokens of links and cookies; a new password invalidates all of a user's."""

from dataclasses import dataclass

from django.core import signing
from django.core.exceptions import ValidationError
from django.utils.crypto import constant_time_compare, salted_hmac

from accounts.models import User


@dataclass
class SignedToken:
    """One kind of token; `seconds` is how long it is valid."""

    salt: str
    seconds: int

    def make(self, user: User, *values: str) -> str:
        return signing.dumps([str(user.pk), self._password_digest(user), *values], salt=self.salt)

    def read(self, token: str) -> tuple[User, list[str]] | None:
        """The active user and the values of a token; None if it is old, outdated or forged."""
        try:
            pk, digest, *values = signing.loads(token, salt=self.salt, max_age=self.seconds)
            user = User.objects.filter(pk=pk, is_active=True).first()
        except (signing.BadSignature, ValidationError, ValueError, TypeError):
            return None
        if user is None or not constant_time_compare(str(digest), self._password_digest(user)):
            return None
        return user, values

    def _password_digest(self, user: User) -> str:
        return salted_hmac(self.salt, user.password).hexdigest()[:32]
