"""Login of programs with a password: short-lived access tokens, single-use refresh tokens.

Both are JWTs signed with JWT_SECRET_KEY. Each refresh token is also a row, so that using it is one
conditional UPDATE; all tokens of one login share a family, and reuse revokes the family.
"""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import jwt
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from accounts.keys.key_format import digest
from accounts.models import RefreshToken, User
from core.errors import InvalidCredential
from core.sql.compiled_queries import CompiledQuery, uuid_param

ISSUER = "ace"
ALGORITHM = "HS256"
# Allowed difference between the clocks of two hosts.
CLOCK_SKEW = timedelta(seconds=10)
Kind = Literal["access", "refresh"]
# Only the SQL is cached: building it was a quarter of a request's CPU.
USER_OF_FAMILY = CompiledQuery(
    lambda: User.objects.filter(
        Exists(
            RefreshToken.objects.filter(
                family=uuid_param("family"), user=OuterRef("pk"), revoked_at=None
            )
        ),
        pk=uuid_param("user"),
        is_active=True,
    )
)


@dataclass(frozen=True)
class TokenPair:
    """The tokens of a login; `expires_in` is the lifetime of the access token in seconds."""

    access: str
    refresh: str
    expires_in: int


@dataclass(frozen=True)
class Claims:
    """What the tokens of a login share: its user, its family, a digest of the password.

    `login_at` is when the password was given, which stays through refreshes.
    """

    user_id: uuid.UUID
    family: uuid.UUID
    password_digest: str
    login_at: datetime

    def match(self, user: User) -> bool:
        """False once the user's password has changed."""
        return constant_time_compare(self.password_digest, _password_digest(user))


def issue_tokens(*, user: User) -> TokenPair:
    """Start a login; expired tokens of the user are deleted."""
    now = timezone.now()
    expired = now - settings.JWT_ACCESS_TOKEN_LIFETIME
    RefreshToken.objects.filter(user=user, expires_at__lt=expired).delete()
    return _new_pair(Claims(user.pk, uuid.uuid4(), _password_digest(user), now), now)


def refresh_tokens(*, refresh: str) -> TokenPair:
    """Exchange the refresh token for a new pair.

    Raises InvalidCredential; for a token used before, after revoking its family.
    """
    claims = _decode(refresh, "refresh")
    with transaction.atomic():
        pair = _use(refresh, claims)
    # Raised outside: the revocation of the family must be committed.
    if pair is None:
        raise InvalidCredential
    return pair


def revoke_tokens(*, refresh: str) -> None:
    """Revoke all tokens of the login of this refresh token. Raises InvalidCredential."""
    claims = _decode(refresh, "refresh", allow_expired=True)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).filter(pk=claims.user_id).first()
        _revoke_family(claims.family, timezone.now())


def revoke_all_tokens(*, user: User) -> None:
    """Revoke the tokens of every login of the user."""
    RefreshToken.objects.filter(user=user, revoked_at=None).update(revoked_at=timezone.now())


def user_for_access_token(token: str) -> tuple[User, datetime]:
    """The active user of a valid access token that is not revoked, and when they logged in.

    One query.
    Raises InvalidCredential.
    """
    claims = _decode(token, "access")
    user = USER_OF_FAMILY.first(family=claims.family, user=claims.user_id)
    if user is None or not claims.match(user):
        raise InvalidCredential
    return user, claims.login_at


def _use(refresh: str, claims: Claims) -> TokenPair | None:
    # Locking the user's row locks all families: otherwise a pair issued while the reuse of an
    # older token revokes the family would outlive it. SQLite's transactions are serial anyway.
    users = User.objects.select_for_update(no_key=True)
    user = users.filter(pk=claims.user_id, is_active=True).first()
    if user is None or not claims.match(user):
        return None
    now = timezone.now()
    used = RefreshToken.objects.filter(
        digest=digest(refresh), used_at=None, revoked_at=None, expires_at__gt=now
    ).update(used_at=now)
    if not used:
        _revoke_family(claims.family, now)
        return None
    return _new_pair(claims, now)


def _revoke_family(family: uuid.UUID, now: datetime) -> None:
    RefreshToken.objects.filter(family=family, revoked_at=None).update(revoked_at=now)


def _new_pair(login: Claims, now: datetime) -> TokenPair:
    life, expiry = settings.JWT_ACCESS_TOKEN_LIFETIME, now + settings.JWT_REFRESH_TOKEN_LIFETIME
    access = _sign(login, "access", now, now + life)
    refresh = _sign(login, "refresh", now, expiry)
    RefreshToken.objects.create(
        user_id=login.user_id, family=login.family, digest=digest(refresh), expires_at=expiry
    )
    return TokenPair(access, refresh, int(life.total_seconds()))


def _sign(login: Claims, kind: Kind, now: datetime, expiry: datetime) -> str:
    claims = {
        "iss": ISSUER,
        "sub": str(login.user_id),
        "fam": str(login.family),
        "pwd": login.password_digest,
        "typ": kind,
        "jti": uuid.uuid4().hex,
        "iat": now,
        "exp": expiry,
        "auth_time": int(login.login_at.timestamp()),
    }
    return jwt.encode(claims, settings.JWT_SECRET_KEY, algorithm=ALGORITHM)


def _decode(token: str, kind: Kind, *, allow_expired: bool = False) -> Claims:
    try:
        claims = jwt.decode(
            token,
            settings.JWT_SECRET_KEY,
            algorithms=[ALGORITHM],
            issuer=ISSUER,
            leeway=CLOCK_SKEW,
            options={"require": ["exp", "sub", "fam", "typ"], "verify_exp": not allow_expired},
        )
        if claims["typ"] != kind:
            raise InvalidCredential
        login_at = datetime.fromtimestamp(claims["auth_time"], UTC)
        return Claims(uuid.UUID(claims["sub"]), uuid.UUID(claims["fam"]), claims["pwd"], login_at)
    except (jwt.PyJWTError, ValueError, KeyError):
        raise InvalidCredential from None


def _password_digest(user: User) -> str:
    return user.get_session_auth_hash()[:16]
