"""What people can do with their own account: address, password, sessions."""

from allauth.usersessions.models import UserSession
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.http import urlsafe_base64_decode, urlsafe_base64_encode

from accounts.mfa.second_factor import has_second_factor, needs_enrolment
from accounts.models import RefreshToken, User
from accounts.services.email_verification import read_verification_token, send_verification_email
from accounts.services.login import check_code, check_new_password, clean_email
from accounts.services.login_throttling import (
    LoginSource,
    count_login_attempt,
    reset_login_attempts,
)
from core.audit import record
from core.emails import send_email
from core.errors import Forbidden, Invalid, NotFound, SecondFactorRequired
from core.ratelimit.limits import consume_rate_limit

tokens = PasswordResetTokenGenerator()


def verify_email(*, token: str, by: User | None, password: str = "", source: LoginSource) -> User:
    """The address that the link proves is the account's, and verified.

    Somebody who is not logged in as that user gives the password too: a link alone would verify
    an account that another person registered with this address. Raises Invalid, RateLimited,
    Forbidden.
    """
    user, email = read_verification_token(token)
    if by != user:
        check_current_password(user=user, password=password, source=source)
    old, changed = user.email, user.email != email
    if changed:
        _require_enrolled_second_factor(user)
    user.email, user.pending_email, user.email_verified = email, "", True
    try:
        with transaction.atomic():
            user.save(update_fields=["email", "pending_email", "email_verified", "updated_at"])
            record(action="verify_email", by=user, subject=user, changed=changed)
    except IntegrityError:
        raise Invalid("Another account has this address by now.") from None
    if changed:
        send_email("security_notice", to=old, what="The e-mail was changed", account=email)
    return user


def request_email_change(*, user: User, email: str, site: str) -> None:
    """A letter to the new address asks for proof; until then everything stays.

    The answer is the same for an address that another account has. Raises Invalid, RateLimited,
    Forbidden for who must have a second factor and has none: its letter goes to the old address.
    """
    _require_enrolled_second_factor(user)
    email = clean_email(email)
    if email == user.email:
        raise Invalid.field("email", "This is your address already.")
    consume_rate_limit("send_mail", str(user.pk))
    with transaction.atomic():
        user.pending_email = email
        user.save(update_fields=["pending_email", "updated_at"])
        record(action="request_email_change", by=user, subject=user)
    if User.objects.filter(email=email).exists():
        send_email("account_exists", to=email, site=site, link=f"{site}/login/reset")
    else:
        send_verification_email(user, to=email, site=site)


def _require_enrolled_second_factor(user: User) -> None:
    if needs_enrolment(user):
        raise Forbidden(
            "Set up the second factor that this account needs, then change the address.",
            code="second_factor_setup_required",
        )


def resend_verification(*, user: User, site: str) -> None:
    """One more letter to the address that is not verified yet. Raises RateLimited."""
    wanted = user.pending_email or ("" if user.email_verified else user.email)
    if wanted:
        consume_rate_limit("send_mail", str(user.pk))
        send_verification_email(user, to=wanted, site=site)


def request_password_reset(*, email: str, address: str, site: str) -> None:
    """One letter goes to the address: a link for a new password, or that there is no account.

    Raises RateLimited, Invalid.
    """
    consume_rate_limit("send_mail", address)
    email = clean_email(email)
    count_login_attempt(account=f"reset {email}", source=LoginSource(address))
    user = User.objects.filter(email=email, is_active=True).first()
    if user is None:
        send_email("no_account", to=email, site=site, link=f"{site}/register")
    else:
        uid = urlsafe_base64_encode(user.pk.bytes)
        link = f"{site}/login/reset/{uid}/{tokens.make_token(user)}"
        send_email("password_reset", to=email, site=site, link=link)


def reset_password(*, uid: str, token: str, password: str) -> User:
    """The user of a reset letter has this password; every session and sign-in has ended.

    The letter also proves the address. API keys stay. Raises NotFound, Invalid.
    """
    user = user_for_reset_token(uid=uid, token=token)
    check_new_password(password, user)
    with transaction.atomic():
        user.email_verified = True
        _set_password(user, password, action="reset_password")
    send_email("security_notice", to=user.email, what="The password was reset", account=user.email)
    return user


def user_for_reset_token(*, uid: str, token: str) -> User:
    """Whose reset letter this is. Raises NotFound for an old, spent or forged one."""
    try:
        user = User.objects.filter(pk=urlsafe_base64_decode(uid).hex(), is_active=True).first()
    except (ValueError, ValidationError):
        user = None
    if user is None or not tokens.check_token(user, token):
        raise NotFound("password reset", "The link is too old, was used, or is not whole.")
    return user


def change_password(*, user: User, current: str, password: str, source: LoginSource) -> User:
    """The user has another password; other sessions and all sign-ins have ended. API keys stay.

    Raises Invalid, RateLimited.
    """
    check_current_password(user=user, password=current, source=source, field="current")
    check_new_password(password, user)
    with transaction.atomic():
        _set_password(user, password, action="change_password")
    send_email(
        "security_notice", to=user.email, what="The password was changed", account=user.email
    )
    return user


def check_current_password(
    *, user: User, password: str, source: LoginSource, field: str = "password"
) -> None:
    """The person at the keyboard knows the password. Raises RateLimited, Invalid."""
    count_login_attempt(account=user.email, source=source)
    if not user.check_password(password):
        raise Invalid.field(field, "This is not your password.")
    reset_login_attempts(account=user.email, source=source)


def reauthenticate_user(*, user: User, password: str, code: str = "", source: LoginSource) -> None:
    """The password, and the second factor of who has one, before something that cannot be undone.

    Raises RateLimited, Invalid, SecondFactorRequired, WrongCode.
    """
    check_current_password(user=user, password=password, source=source)
    if has_second_factor(user):
        if not code:
            raise SecondFactorRequired
        check_code(user=user, code=code, source=source)


def end_session(*, user: User, session_id: int) -> None:
    """That browser is logged out. Raises NotFound for a session that is not the user's."""
    session = UserSession.objects.filter(user_id=user.pk, pk=session_id).first()
    if session is None:
        raise NotFound("session", "Look at the list again.")
    with transaction.atomic():
        session.end()
        record(action="end_session", by=user, subject=user)


def end_other_sessions(*, user: User, keep: str) -> int:
    """Every browser but the one with the session key `keep` is logged out, and every program."""
    with transaction.atomic():
        others = UserSession.objects.filter(user_id=user.pk).exclude(session_key=keep)
        ended = [session.end() for session in others]
        _end_sign_ins(user)
        record(action="end_other_sessions", by=user, subject=user, ended=len(ended))
    return len(ended)


def _set_password(user: User, password: str, *, action: str) -> None:
    user.set_password(password)
    user.save()
    # Sessions carry a digest of the password, so each ends by itself; the list forgets them.
    UserSession.objects.filter(user_id=user.pk).delete()
    _end_sign_ins(user)
    record(action=action, by=user, subject=user)


def _end_sign_ins(user: User) -> None:
    RefreshToken.objects.filter(user=user, revoked_at=None).update(revoked_at=timezone.now())


def finish_onboarding(*, user: User, how: str) -> User:
    """The checklist no longer comes by itself; `how` is done or dismissed, and the first stays."""
    with transaction.atomic():
        user = User.objects.select_for_update(of=("self",), no_key=True).get(pk=user.pk)
        if "start" not in user.settings:
            user.settings["start"] = how
            user.save(update_fields=["settings", "updated_at"])
            record(action="finish_onboarding", by=user, subject=user, how=how)
    return user
