"""What staff can do with users: disable, delete, end sessions, require a second factor."""

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.db import transaction

from accounts.keys.jwt_tokens import revoke_all_tokens
from accounts.mfa.second_factor import has_second_factor
from accounts.models import User
from accounts.services.personal_data import delete_account, personal_rows
from core.audit import record
from core.errors import Conflict, Forbidden
from core.security.scopes import Principal


def disable_user(*, user: User, by: Principal, reason: str = "") -> User:
    """Refuse the user's sessions, keys and tokens from the next request on; nothing is deleted.

    `reason` is for the audit log. Raises Conflict for the own account, Forbidden for other staff
    unless `by` is a superuser.
    """
    if user.pk == by.user.pk:
        raise Conflict("You cannot disable your own account.", code="own_account")
    _require_authority_over(user, by)
    with transaction.atomic():
        _update_user(user, by, "disable_user", reason=reason, is_active=False)
        _end_sessions(user)
    return user


def enable_user(*, user: User, by: Principal) -> User:
    """Allow login and keys again. Raises Forbidden as above."""
    _require_authority_over(user, by)
    with transaction.atomic():
        _update_user(user, by, "enable_user", is_active=True)
    return user


def require_second_factor(*, user: User, by: Principal, required: bool = True) -> User:
    """Require a second factor: until it is set up, pages and login are refused.

    API keys stay. Raises Forbidden.
    """
    _require_authority_over(user, by)
    action = "require_second_factor" if required else "stop_requiring_second_factor"
    with transaction.atomic():
        _update_user(user, by, action, second_factor_required=required)
        if required and not has_second_factor(user):
            revoke_all_tokens(user=user)
    return user


def delete_user(*, user: User, by: Principal) -> None:
    """Delete the account and everything in it for its owner.

    Raises Conflict for the own account and the last superuser, Forbidden as above.
    """
    if user.pk == by.user.pk:
        raise Conflict("Delete your own account in your settings.", code="own_account")
    _require_authority_over(user, by)
    delete_account(user=user, by=by)


def remove_second_factors(*, user: User, by: Principal) -> int:
    """Remove the second factors of a lost device; returns how many. Raises Forbidden."""
    _require_authority_over(user, by)
    with transaction.atomic():
        removed: int = Authenticator.objects.filter(user=user).delete()[0]
        record(action="remove_second_factors", by=by, subject=user, owner=user, factors=removed)
    return removed


def end_all_sessions(*, user: User, by: Principal) -> int:
    """Log out every browser and program of the user; API keys stay.

    Returns the number of browsers. Raises Forbidden.
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
    revoke_all_tokens(user=user)
    return len(sessions)


def count_rows(*, user: User) -> str:
    """What a deletion deletes but sums, in words: "3 playbooks, 120 outcomes, 2 API keys"."""
    found = ((rows.model._meta, rows.count()) for rows in personal_rows(user))
    return ", ".join(
        f"{count:,} {meta.verbose_name if count == 1 else meta.verbose_name_plural}"
        for meta, count in found
        if count and meta.model is not User
        if not str(meta.verbose_name).endswith(("tally", "counts"))
    )


def _update_user(
    user: User, by: Principal, action: str, *, reason: str = "", **fields: bool
) -> None:
    for name, value in fields.items():
        setattr(user, name, value)
    user.save(update_fields=[*fields, "updated_at"])
    detail = {"reason": reason} if reason else {}
    record(action=action, by=by, subject=user, owner=user, **detail)


def _require_authority_over(user: User, by: Principal) -> None:
    above = (user.is_staff or user.is_superuser) and user.pk != by.user.pk
    if above and not by.user.is_superuser:
        raise Forbidden("Only a superuser can change other staff.", code="superuser")
