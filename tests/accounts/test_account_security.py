"""Changes to an account are verified and reveal nothing about other accounts."""

import re
from unittest.mock import patch

import pytest
from allauth.mfa.models import Authenticator
from django.core import mail
from django.test import RequestFactory
from pytest_django import Settings

from accounts.keys.authentication import principal_for_bearer, principal_for_key
from accounts.keys.jwt_tokens import issue_tokens, refresh_tokens, user_for_access_token
from accounts.mfa.second_factor import verify_code
from accounts.models import User
from accounts.services import login
from accounts.services.account_settings import (
    change_password,
    request_email_change,
    request_password_reset,
    reset_password,
    user_for_reset_token,
    verify_email,
)
from accounts.services.login import read_verification_token, register_user
from accounts.services.login_throttling import LoginSource
from accounts.services.user_administration import require_second_factor
from core.errors import (
    Forbidden,
    Invalid,
    NotAuthenticated,
    NotFound,
    RateLimited,
    SecondFactorRequired,
    WrongCode,
    WrongCredentials,
)
from core.http.requests import site_url
from core.models import AuditEntry
from core.security.scopes import Principal
from tests.factories import PASSWORD, make_key, make_user
from tests.harness.mfa import recovery_codes, set_up_totp, totp_code

SITE, ADDRESS, SOURCE = "https://ace.example", "192.0.2.1", LoginSource("192.0.2.1")
NEW = "another long password"


def register(email: str, password: str = PASSWORD) -> None:
    register_user(email=email, password=password, address=ADDRESS, site=SITE)


def log_in(email: str, password: str = PASSWORD, code: str = "") -> User:
    return login.log_in(email=email, password=password, code=code, address=ADDRESS, site=SITE)


def link() -> str:
    """The last part of the link in the newest e-mail."""
    found = re.search(r"https://ace\.example/(\S+)", str(mail.outbox[-1].body))
    assert found
    return found[1].rpartition("/")[2]


@pytest.fixture
def mandatory(settings: Settings) -> None:
    settings.EMAIL_VERIFICATION = "mandatory"


def test_a_new_and_a_known_address_each_get_one_email(alice: User, mandatory: None) -> None:
    alice.email_verified = True
    alice.save()
    for email in (alice.email, "new@example.org"):
        register(email)
    assert [message.to for message in mail.outbox] == [[alice.email], ["new@example.org"]]
    assert "already have an ACE Platform account" in mail.outbox[0].subject
    assert "Confirm" in mail.outbox[1].subject


def test_login_after_registration_does_not_reveal_known_addresses(
    alice: User, mandatory: None
) -> None:
    alice.email_verified = True
    alice.save()
    errors = set()
    for email in (alice.email, "new@example.org"):
        register(email, NEW)
        with pytest.raises(WrongCredentials) as refused:
            log_in(email, NEW)
        errors.add(str(refused.value))
    assert len(errors) == 1


def test_a_confirmed_address_can_log_in(db: None, mandatory: None) -> None:
    register("dora@example.org")
    verify_email(token=link(), by=None, password=PASSWORD, source=SOURCE)
    assert log_in("dora@example.org").email_verified


def test_a_link_without_the_password_confirms_nothing(db: None, mandatory: None) -> None:
    register("dora@example.org", "the attacker's password")
    with pytest.raises(Invalid):
        verify_email(token=link(), by=None, password=PASSWORD, source=SOURCE)


def test_registering_again_takes_over_an_unused_account(db: None, mandatory: None) -> None:
    register("dora@example.org", "the attacker's password")
    old = link()
    register("dora@example.org")
    with pytest.raises(Invalid):
        verify_email(token=old, by=None, password=PASSWORD, source=SOURCE)
    verify_email(token=link(), by=None, password=PASSWORD, source=SOURCE)
    assert log_in("dora@example.org")
    assert AuditEntry.objects.filter(action="take_over_user").count() == 1


@pytest.mark.parametrize("token", ["", "x", "a:b:c", "WyJ4Il0:x:y"])
def test_a_forged_link_is_refused(db: None, token: str) -> None:
    with pytest.raises(Invalid):
        read_verification_token(token)


def test_a_link_works_once(db: None, mandatory: None) -> None:
    register("dora@example.org")
    verify_email(token=link(), by=None, password=PASSWORD, source=SOURCE)
    with pytest.raises(Invalid):
        read_verification_token(link())


def test_a_new_address_counts_only_once_it_is_confirmed(alice: User) -> None:
    request_email_change(user=alice, email="New@Example.org", site=SITE)
    assert mail.outbox[-1].to == ["new@example.org"]
    assert User.objects.get(pk=alice.pk).email == "alice@example.org"
    verify_email(token=link(), by=alice, source=SOURCE)
    alice.refresh_from_db()
    assert (alice.email, alice.pending_email, alice.email_verified) == ("new@example.org", "", True)
    assert mail.outbox[-1].to == ["alice@example.org"]


def test_changing_to_a_known_address_answers_the_same(alice: User, charlie: User) -> None:
    request_email_change(user=alice, email=charlie.email, site=SITE)
    assert "already have an ACE Platform account" in mail.outbox[-1].subject
    assert mail.outbox[-1].to == [charlie.email]


def test_an_address_taken_in_the_meantime_is_refused(alice: User) -> None:
    request_email_change(user=alice, email="new@example.org", site=SITE)
    make_user("new@example.org")
    with pytest.raises(Invalid):
        verify_email(token=link(), by=alice, source=SOURCE)


def test_a_reset_link_sets_the_password_once(alice: User) -> None:
    request_password_reset(email=alice.email, address=ADDRESS, site=SITE)
    uid, token = re.findall(r"/login/reset/(\S+)/(\S+)", str(mail.outbox[-1].body))[0]
    reset_password(uid=uid, token=token, password=NEW)
    assert log_in(alice.email, NEW).email_verified
    with pytest.raises(NotFound):
        reset_password(uid=uid, token=token, password=PASSWORD)


def test_a_reset_of_an_unknown_address_answers_the_same(db: None) -> None:
    request_password_reset(email="nobody@example.org", address=ADDRESS, site=SITE)
    assert [message.to for message in mail.outbox] == [["nobody@example.org"]]


@pytest.mark.parametrize("uid", ["", "x", "AA", "%00", "ÿ"])
def test_a_forged_reset_is_not_found(db: None, uid: str) -> None:
    with pytest.raises(NotFound):
        user_for_reset_token(uid=uid, token="x-y")


def test_resets_of_one_address_are_throttled(db: None) -> None:
    ask = {"email": "nobody@example.org", "address": ADDRESS, "site": SITE}
    for _ in range(5):
        request_password_reset(**ask)
    with pytest.raises(RateLimited):
        request_password_reset(**ask)


def test_a_new_password_revokes_tokens_and_keeps_keys(alice: User) -> None:
    tokens, key = issue_tokens(user=alice), make_key(alice)[1]
    change_password(user=alice, current=PASSWORD, password=NEW, source=SOURCE)
    with pytest.raises(NotAuthenticated):
        refresh_tokens(refresh=tokens.refresh)
    with pytest.raises(NotAuthenticated):
        principal_for_bearer(tokens.access)
    assert principal_for_key(key).user == alice


def test_changing_the_password_asks_for_the_old_one(alice: User) -> None:
    with pytest.raises(Invalid) as refused:
        change_password(user=alice, current="no", password=NEW, source=SOURCE)
    assert list(refused.value.fields) == ["current"]


def test_a_second_factor_code_is_required_and_single_use(alice: User) -> None:
    secret = set_up_totp(alice)
    with pytest.raises(SecondFactorRequired):
        log_in(alice.email)
    with pytest.raises(WrongCode):
        log_in(alice.email, code="000000")
    code = totp_code(secret)
    assert log_in(alice.email, code=code) == alice
    with pytest.raises(WrongCode):
        log_in(alice.email, code=code)


def test_a_recovery_code_works_once(alice: User) -> None:
    set_up_totp(alice)
    code = recovery_codes(alice)[0]
    assert log_in(alice.email, code=code) == alice
    with pytest.raises(WrongCode):
        log_in(alice.email, code=code)


def test_guessing_codes_is_throttled(alice: User, settings: Settings) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"log_in": "99/m"}
    set_up_totp(alice)
    for _ in range(5):
        with pytest.raises(WrongCode):
            log_in(alice.email, code="000000")
    with pytest.raises(RateLimited):
        log_in(alice.email, code="000000")


def test_a_used_code_is_refused_as_long_as_it_is_valid(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, clock = set_up_totp(alice), [1_900_000_010.0]
    monkeypatch.setattr("time.time", lambda: clock[0])
    code = totp_code(secret)
    assert verify_code(alice, code)
    clock[0] += 35  # the next half minute: the app's last code still fits
    assert not verify_code(alice, code)
    assert verify_code(alice, totp_code(secret))


def test_requiring_a_second_factor_revokes_tokens(alice: User, staff: User) -> None:
    tokens = issue_tokens(user=alice)
    require_second_factor(user=alice, by=Principal.of(staff))
    with pytest.raises(NotAuthenticated):
        user_for_access_token(tokens.access)


def test_rest_login_is_refused_until_a_required_factor_is_set_up(alice: User) -> None:
    alice.second_factor_required = True
    alice.save()
    with pytest.raises(Forbidden) as refused:
        log_in(alice.email)
    assert refused.value.code == "second_factor_setup_required"


def test_the_secret_of_a_second_factor_is_encrypted(alice: User) -> None:
    secret = set_up_totp(alice)
    kept = list(Authenticator.objects.filter(user=alice).values_list("data", flat=True))
    assert secret not in str(kept)


def test_account_changes_are_in_the_audit_log(alice: User) -> None:
    change_password(user=alice, current=PASSWORD, password=NEW, source=SOURCE)
    request_email_change(user=alice, email="new@example.org", site=SITE)
    verify_email(token=link(), by=alice, source=SOURCE)
    actions = list(AuditEntry.objects.values_list("action", flat=True))
    revoked = ["end_other_sessions", "revoke_credentials"]  # the first proof of an address
    assert actions == ["verify_email", *revoked, "request_email_change", "change_password"]


def test_a_failing_mail_server_changes_no_response(db: None) -> None:
    with patch("core.emails.EmailMessage.send", side_effect=OSError):
        register("dora@example.org")
    assert User.objects.filter(email="dora@example.org").exists()


def test_links_in_emails_begin_with_the_public_url(rf: RequestFactory, settings: Settings) -> None:
    settings.PUBLIC_URL = "https://ace.example"
    assert site_url(rf.get("/", headers={"host": "localhost"})) == "https://ace.example"
