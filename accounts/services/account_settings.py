"""Changes to one's own account: e-mail, password, sessions, onboarding."""

from allauth.usersessions.models import UserSession
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.http import urlsafe_base64_decode, urlsafe_base64_encode
from oauth2_provider.models import AccessToken, Grant, RefreshToken

from accounts.browser_sessions.store import stored_key
from accounts.keys.api_keys import revoke_api_key
from accounts.keys.jwt_tokens import revoke_all_tokens
from accounts.mfa.second_factor import has_second_factor, needs_enrolment
from accounts.models import ApiKey, ConnectedApp, LlmKey, User, WebhookEndpoint
from accounts.services.login import (
    check_code,
    check_new_password,
    clean_email,
    read_verification_token,
    send_verification_email,
)
from accounts.services.login_throttling import (
    LoginSource,
    count_login_attempt,
    reset_login_attempts,
)
from core.audit import record
from core.emails import send_email, send_security_notice
from core.errors import Forbidden, Invalid, NotFound, SecondFactorRequired
from core.ratelimit.limits import consume_rate_limit

tokens = PasswordResetTokenGenerator()


def verify_email(
    *, token: str, by: User | None, password: str = "", source: LoginSource, keep: str = ""
) -> User:
    """Set the e-mail that the link verifies.

    The first proof of an address revokes what was let in before it: somebody else may have
    registered the account. `keep` is the key of the session that stays.

    Unless `by` is that user, the password is required too: the link alone would verify an account
    that somebody else registered with this address. Raises Invalid, RateLimited, Forbidden.
    """
    user, email = read_verification_token(token)
    if by != user:
        check_current_password(user=user, password=password, source=source)
    old, changed = user.email, user.email != email
    if changed:
        _require_enrolled_second_factor(user)
    is_first = not user.email_verified
    user.email, user.pending_email, user.email_verified = email, "", True
    try:
        with transaction.atomic():
            user.save(update_fields=["email", "pending_email", "email_verified", "updated_at"])
            if is_first:
                revoke_credentials(user=user, reason="The address was confirmed.", keep=keep)
            record(action="verify_email", by=user, subject=user, changed=changed)
    except IntegrityError:
        raise Invalid("Another account now uses this address.") from None
    if changed:
        send_email("security_notice", to=old, what="Your email was changed", account=email)
    return user


def request_email_change(*, user: User, email: str, site: str) -> None:
    """E-mail a verification link to the new address; nothing changes until it is used.

    The result is the same for the address of another account. Raises Invalid, RateLimited, and
    Forbidden while a required second factor is missing: its link goes to the current address.
    """
    _require_enrolled_second_factor(user)
    email = clean_email(email)
    if email == user.email:
        raise Invalid.field("email", "This is already your email address.")
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
            "Set up the second factor that this account requires first.",
            code="second_factor_setup_required",
        )


def resend_verification(*, user: User, site: str) -> None:
    """E-mail the verification link again. Raises RateLimited."""
    address = user.pending_email or ("" if user.email_verified else user.email)
    if address:
        consume_rate_limit("send_mail", str(user.pk))
        send_verification_email(user, to=address, site=site)


def request_password_reset(*, email: str, address: str, site: str) -> None:
    """E-mail a link to choose a new password, or the note that there is no account.

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


def reset_password(*, uid: str, token: str, password: str, revoke_keys: bool = False) -> User:
    """Set the password of the link's user and end every session and login.

    The link also verifies the address. API keys and apps stay unless `revoke_keys`, or unless the
    address was never proved before. Raises NotFound, Invalid.
    """
    user = user_for_reset_token(uid=uid, token=token)
    check_new_password(password, user)
    with transaction.atomic():
        if revoke_keys or not user.email_verified:
            revoke_credentials(user=user, reason="The password was reset.")
        user.email_verified = True
        _set_password(user, password, action="reset_password")
    send_security_notice(user, "Your password was reset")
    return user


def user_for_reset_token(*, uid: str, token: str) -> User:
    """The user of a reset link. Raises NotFound if it is old, used or forged."""
    try:
        user = User.objects.filter(pk=urlsafe_base64_decode(uid).hex(), is_active=True).first()
    except (ValueError, ValidationError):
        user = None
    if user is None or not tokens.check_token(user, token):
        raise NotFound("password reset", "It is invalid or has expired.", given="link")
    return user


def change_password(*, user: User, current: str, password: str, source: LoginSource) -> User:
    """Set a new password; ends other sessions and all logins, API keys stay.

    Raises Invalid, RateLimited.
    """
    check_current_password(user=user, password=current, source=source, field="current")
    check_new_password(password, user)
    with transaction.atomic():
        _set_password(user, password, action="change_password")
    send_security_notice(user, "Your password was changed")
    return user


def check_current_password(
    *, user: User, password: str, source: LoginSource, field: str = "password"
) -> None:
    """Check the current password. Raises RateLimited, Invalid."""
    count_login_attempt(account=user.email, source=source)
    if not user.check_password(password):
        raise Invalid.field(field, "Incorrect password.")
    reset_login_attempts(account=user.email, source=source)


def reauthenticate_user(*, user: User, password: str, code: str = "", source: LoginSource) -> None:
    """Check the password and, where set up, the second factor before an irreversible change.

    Raises RateLimited, Invalid, SecondFactorRequired, WrongCode.
    """
    check_current_password(user=user, password=password, source=source)
    if has_second_factor(user):
        if not code:
            raise SecondFactorRequired
        check_code(user=user, code=code, source=source)


def end_session(*, user: User, session_id: int) -> None:
    """Log that browser out. Raises NotFound for a session that is not the user's."""
    session = UserSession.objects.filter(user_id=user.pk, pk=session_id).first()
    if session is None:
        raise NotFound("session", "Reload the list.")
    with transaction.atomic():
        session.end()
        record(action="end_session", by=user, subject=user)


def end_other_sessions(*, user: User, keep: str) -> int:
    """Log out every program, and every browser except the one with session key `keep`."""
    with transaction.atomic():
        others = UserSession.objects.filter(user_id=user.pk).exclude(session_key=stored_key(keep))
        ended = [session.end() for session in others]
        revoke_all_tokens(user=user)
        record(action="end_other_sessions", by=user, subject=user, ended=len(ended))
    return len(ended)


def revoke_credentials(*, user: User, reason: str, keep: str = "") -> None:
    """Revoke the user's keys, apps and logins; the session with the key `keep` stays.

    And remove the LLM key and the webhook: an endpoint of somebody else would go on being sent the
    user's texts.
    """
    with transaction.atomic():
        for key in ApiKey.objects.filter(user=user, revoked_at=None):
            revoke_api_key(key=key, reason=reason)
        apps = ConnectedApp.objects.filter(user=user).delete()[0]
        for model in (RefreshToken, AccessToken, Grant, LlmKey, WebhookEndpoint):
            model.objects.filter(user=user).delete()
        record(action="revoke_credentials", by=user, subject=user, apps=apps)
        end_other_sessions(user=user, keep=keep)


def _set_password(user: User, password: str, *, action: str) -> None:
    user.set_password(password)
    user.save()
    # Sessions carry a digest of the password, so each ends by itself; the list is emptied here.
    UserSession.objects.filter(user_id=user.pk).delete()
    revoke_all_tokens(user=user)
    record(action=action, by=user, subject=user)


def finish_onboarding(*, user: User, how: str) -> User:
    """Stop showing the onboarding checklist; `how` is done or dismissed, the first one stays."""
    with transaction.atomic():
        user = User.objects.select_for_update(of=("self",), no_key=True).get(pk=user.pk)
        if "start" not in user.settings:
            user.settings["start"] = how
            user.save(update_fields=["settings", "updated_at"])
            record(action="finish_onboarding", by=user, subject=user, how=how)
    return user
