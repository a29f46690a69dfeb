"""Sign-ins of programs on behalf of people: short access tokens, single-use refresh tokens.

Both are JWTs signed with JWT_SECRET_KEY. Each refresh token is also a row, so that spending it is
one conditional UPDATE; all tokens of one sign-in share a family, and reuse ends the family.
"""

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import jwt
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from accounts.keys.key_format import digest
from accounts.models import RefreshToken, User
from core.errors import NotAuthenticated

ISSUER = "ace"
ALGORITHM = "HS256"
# How far the clocks of two hosts may differ.
CLOCK_SKEW = timedelta(seconds=10)
Kind = Literal["access", "refresh"]


@dataclass(frozen=True)
class TokenPair:
    """What a sign-in gives; `expires_in` is the life of the access token in seconds."""

    access: str
    refresh: str
    expires_in: int


@dataclass(frozen=True)
class Claims:
    """The checked content of a token: whose, of which sign-in, under which password."""

    user_id: uuid.UUID
    family: uuid.UUID
    password_mark: str

    def fit(self, user: User) -> bool:
        """False once the user's password has changed."""
        return constant_time_compare(self.password_mark, _password_mark(user))


def issue_tokens(*, user: User) -> TokenPair:
    """The user has one more sign-in; rows that nobody can use any more are gone."""
    now = timezone.now()
    useless = now - settings.JWT_ACCESS_TOKEN_LIFETIME
    RefreshToken.objects.filter(user=user, expires_at__lt=useless).delete()
    return _new_pair(user, uuid.uuid4(), now)


def refresh_tokens(*, refresh: str) -> TokenPair:
    """The refresh token is spent and a new pair takes its place.

    Raises NotAuthenticated; a token that was spent before ends its whole family first.
    """
    claims = _read(refresh, "refresh")
    with transaction.atomic():
        pair = _spend(refresh, claims)
    # Raised outside: the family's end has to be committed.
    if pair is None:
        raise NotAuthenticated
    return pair


def revoke_tokens(*, refresh: str) -> None:
    """The sign-in that this refresh token belongs to has ended. Raises NotAuthenticated."""
    claims = _read(refresh, "refresh", expired_too=True)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).filter(pk=claims.user_id).first()
        _end_family(claims.family, timezone.now())


def user_for_access_token(token: str) -> User:
    """The active user of a valid access token whose sign-in has not ended; one query.

    Raises NotAuthenticated.
    """
    claims = _read(token, "access")
    alive = RefreshToken.objects.filter(family=claims.family, user=OuterRef("pk"), revoked_at=None)
    user = User.objects.filter(Exists(alive), pk=claims.user_id, is_active=True).first()
    if user is None or not claims.fit(user):
        raise NotAuthenticated
    return user


def _spend(refresh: str, claims: Claims) -> TokenPair | None:
    # The user's row is the lock of all families: without it, a pair made while a reuse of an
    # older token ends the family would outlive it. SQLite's transactions are serial anyway.
    users = User.objects.select_for_update(no_key=True)
    user = users.filter(pk=claims.user_id, is_active=True).first()
    if user is None or not claims.fit(user):
        return None
    now = timezone.now()
    spent = RefreshToken.objects.filter(
        digest=digest(refresh), used_at=None, revoked_at=None, expires_at__gt=now
    ).update(used_at=now)
    if not spent:
        _end_family(claims.family, now)
        return None
    return _new_pair(user, claims.family, now)


def _end_family(family: uuid.UUID, now: datetime) -> None:
    RefreshToken.objects.filter(family=family, revoked_at=None).update(revoked_at=now)


def _new_pair(user: User, family: uuid.UUID, now: datetime) -> TokenPair:
    life = settings.JWT_ACCESS_TOKEN_LIFETIME
    access = _sign(user, family, "access", now, life)
    refresh = _sign(user, family, "refresh", now, settings.JWT_REFRESH_TOKEN_LIFETIME)
    RefreshToken.objects.create(
        user=user,
        family=family,
        digest=digest(refresh),
        expires_at=now + settings.JWT_REFRESH_TOKEN_LIFETIME,
    )
    return TokenPair(access, refresh, int(life.total_seconds()))


def _sign(user: User, family: uuid.UUID, kind: Kind, now: datetime, life: timedelta) -> str:
    claims = {
        "iss": ISSUER,
        "sub": str(user.pk),
        "fam": str(family),
        "pwd": _password_mark(user),
        "typ": kind,
        "jti": uuid.uuid4().hex,
        "iat": now,
        "exp": now + life,
    }
    return jwt.encode(claims, settings.JWT_SECRET_KEY, algorithm=ALGORITHM)


def _read(token: str, kind: Kind, *, expired_too: bool = False) -> Claims:
    try:
        claims = jwt.decode(
            token,
            settings.JWT_SECRET_KEY,
            algorithms=[ALGORITHM],
            issuer=ISSUER,
            leeway=CLOCK_SKEW,
            options={"require": ["exp", "sub", "fam", "typ"], "verify_exp": not expired_too},
        )
        if claims["typ"] != kind:
            raise NotAuthenticated
        return Claims(uuid.UUID(claims["sub"]), uuid.UUID(claims["fam"]), claims["pwd"])
    except (jwt.PyJWTError, ValueError, KeyError):
        raise NotAuthenticated from None


def _password_mark(user: User) -> str:
    return user.get_session_auth_hash()[:16]
