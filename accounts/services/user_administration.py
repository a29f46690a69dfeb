"""What staff can do with people: let them in or not, and ask for a second factor."""

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.db import transaction
from django.utils import timezone

from accounts.mfa.second_factor import has_second_factor
from accounts.models import RefreshToken, User
from accounts.services.personal_data import delete_account
from core.audit import record
from core.errors import Conflict, Forbidden
from core.security.scopes import Principal


def disable_user(*, user: User, by: Principal) -> User:
    """Sessions, keys and tokens of this person are refused from the next request on.

    Nothing of theirs is lost. Raises Conflict for oneself, Forbidden for other staff unless `by`
    is a superuser.
    """
    if user.pk == by.user.pk:
        raise Conflict("You cannot disable your own account.", code="own_account")
    _require_authority_over(user, by)
    with transaction.atomic():
        _update_user(user, by, "disable_user", is_active=False)
        _end_sessions(user)
    return user


def enable_user(*, user: User, by: Principal) -> User:
    """The person may log in again, and their keys work again. Raises Forbidden as above."""
    _require_authority_over(user, by)
    with transaction.atomic():
        _update_user(user, by, "enable_user", is_active=True)
    return user


def require_second_factor(*, user: User, by: Principal, required: bool = True) -> User:
    """Until a second factor is set up, this person can do nothing else with a browser or sign-in.

    API keys stay. Raises Forbidden.
    """
    _require_authority_over(user, by)
    action = "require_second_factor" if required else "stop_requiring_second_factor"
    with transaction.atomic():
        _update_user(user, by, action, second_factor_required=required)
        if required and not has_second_factor(user):
            _end_sign_ins(user)
    return user


def delete_user(*, user: User, by: Principal) -> None:
    """Staff deletes the account for its owner, who cannot: all of it is gone for good.

    Raises Conflict for oneself and for the last superuser, Forbidden as above.
    """
    if user.pk == by.user.pk:
        raise Conflict("Delete your own account in your settings.", code="own_account")
    _require_authority_over(user, by)
    delete_account(user=user, by=by)


def remove_second_factors(*, user: User, by: Principal) -> int:
    """The person logs in with the password alone, for a lost device; how many factors are gone.

    Raises Forbidden.
    """
    _require_authority_over(user, by)
    with transaction.atomic():
        gone: int = Authenticator.objects.filter(user=user).delete()[0]
        record(action="remove_second_factors", by=by, subject=user, owner=user, factors=gone)
    return gone


def end_all_sessions(*, user: User, by: Principal) -> int:
    """Every browser and program of this person has to log in again; API keys stay.

    Returns how many browsers. Raises Forbidden.
    """
    _require_authority_over(user, by)
    with transaction.atomic():
        ended = _end_sessions(user)
        record(action="end_all_sessions", by=by, subject=user, owner=user, ended=ended)
    return ended


def _end_sessions(user: User) -> int:
    sessions = list(UserSession.objects.filter(user=user))
    for session in sessions:
        session.end()
    _end_sign_ins(user)
    return len(sessions)


def _end_sign_ins(user: User) -> None:
    RefreshToken.objects.filter(user=user, revoked_at=None).update(revoked_at=timezone.now())


def _update_user(user: User, by: Principal, action: str, **fields: bool) -> None:
    for name, value in fields.items():
        setattr(user, name, value)
    user.save(update_fields=[*fields, "updated_at"])
    record(action=action, by=by, subject=user, owner=user)


def _require_authority_over(user: User, by: Principal) -> None:
    above = (user.is_staff or user.is_superuser) and user.pk != by.user.pk
    if above and not by.user.is_superuser:
        raise Forbidden("Only a superuser can change other staff.", code="superuser")
