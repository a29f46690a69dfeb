"""What an attacker let in before the owner came is revoked; the owner hears of what is new."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone
from django.utils.http import urlsafe_base64_encode

from accounts.keys.api_keys import create_api_key
from accounts.keys.authentication import principal_for_key
from accounts.keys.jwt_tokens import issue_tokens, refresh_tokens, user_for_access_token
from accounts.models import ApiKey, ConnectedApp, LlmKey, User, WebhookEndpoint
from accounts.services import login
from accounts.services.account_settings import reset_password, tokens, verify_email
from accounts.services.login import send_verification_email
from accounts.services.login_throttling import LoginSource
from core.errors import Invalid, NotAuthenticated, RateLimited, WrongCode
from tests.factories import PASSWORD, make_app, make_key
from tests.harness.clients import logged_in_client
from tests.harness.mfa import recovery_codes, set_up_totp
from tests.harness.rest_client import Rest

NEW = "another long password"
SOURCE = LoginSource("192.0.2.1")


def reset(user: User, **fields: Any) -> None:
    uid, token = urlsafe_base64_encode(user.pk.bytes), tokens.make_token(user)
    reset_password(uid=uid, token=token, password=NEW, **fields)


def subjects() -> str:
    return "\n".join(str(message.subject) for message in mail.outbox)


def send_texts_elsewhere(user: User) -> None:
    """To an LLM endpoint and a webhook of whoever uses the account now."""
    LlmKey.objects.create(user=user, encrypted_key="x", base_url="https://llm.example/v1")
    WebhookEndpoint.objects.create(user=user, encrypted_key="x", url="https://hook.example")


def endpoints() -> int:
    return LlmKey.objects.count() + WebhookEndpoint.objects.count()


def test_the_first_proof_of_an_address_revokes_what_came_before(alice: User) -> None:
    token = make_key(alice)[1]
    make_app(alice)
    send_texts_elsewhere(alice)
    mail.outbox.clear()
    send_verification_email(alice, to=alice.email, site="https://ace.example")
    link = str(mail.outbox[0].body).split("/verify/")[1].split()[0]
    verify_email(token=link, by=None, password=PASSWORD, source=SOURCE)
    with pytest.raises(NotAuthenticated):
        principal_for_key(token)
    assert (ConnectedApp.objects.count(), endpoints()) == (0, 0)


def test_a_reset_revokes_keys_of_an_address_that_was_never_proved(alice: User) -> None:
    token = make_key(alice)[1]
    reset(alice)
    with pytest.raises(NotAuthenticated):
        principal_for_key(token)


@pytest.mark.parametrize("asked", [True, False])
def test_a_reset_revokes_keys_and_apps_when_asked(alice: User, asked: bool) -> None:
    User.objects.update(email_verified=True)
    alice.refresh_from_db()
    make_key(alice)
    make_app(alice)
    send_texts_elsewhere(alice)
    reset(alice, revoke_keys=asked)
    kept = ApiKey.objects.filter(revoked_at=None).count(), ConnectedApp.objects.count()
    assert (*kept, endpoints()) == ((0, 0, 0) if asked else (1, 1, 2))


def test_the_reset_page_proposes_to_revoke(alice: User) -> None:
    uid, token = urlsafe_base64_encode(alice.pk.bytes), tokens.make_token(alice)
    page = Client().get(f"/login/reset/{uid}/{token}").content.decode()
    assert 'name="revoke_keys"' in page
    assert "checked" in page


def test_no_key_lives_longer_than_the_setting(alice: User, settings: Any) -> None:
    settings.API_KEY_MAX_LIFETIME = timedelta(days=30)
    with pytest.raises(Invalid):
        make_key(alice, expires_at=timezone.now() + timedelta(days=31))
    key = make_key(alice)[0]
    assert key.expires_at is not None
    assert key.expires_at <= timezone.now() + timedelta(days=30)


@pytest.mark.django_db(transaction=True)
def test_the_owner_hears_of_a_new_key_app_and_device(alice: User) -> None:
    make_key(alice, name="laptop")
    make_app(alice, name="Agent")
    for _ in range(2):
        Client().post("/login", {"email": alice.email, "password": PASSWORD})
    assert "The API key “laptop” was created" in subjects()
    assert "The app “Agent” was connected" in subjects()
    assert subjects().count("New login from a browser") == 1  # not of the first
    create_api_key(user=alice, name="quiet", scopes=["read"], notify=False)
    assert "quiet" not in subjects()


@pytest.mark.django_db(transaction=True)
def test_wrong_codes_count_over_all_networks_and_the_owner_gets_an_email(alice: User) -> None:
    set_up_totp(alice)
    code = recovery_codes(alice)[0]
    for number in range(5):
        with pytest.raises(WrongCode):
            login.check_code(user=alice, code="000000", source=LoginSource(f"198.51.{number}.1"))
    with pytest.raises(RateLimited):
        login.check_code(user=alice, code=code, source=LoginSource("203.0.113.9"))
    assert subjects().count("Several wrong second-factor codes") == 1
    # A browser that the user logged in with before is not delayed by it.
    login.check_code(user=alice, code=code, source=LoginSource("203.0.113.9", "known"))


def test_making_a_key_on_the_page_asks_for_the_password_again(alice: User) -> None:
    sent = {"name": "laptop", "scopes": ["report"], "days": "90"}
    late = logged_in_client(alice, minutes_ago=6).post("/keys", sent)
    assert "/settings/confirm" in late["Location"]
    assert not ApiKey.objects.exists()
    assert logged_in_client(alice).post("/keys", sent).status_code == 201


def test_keys_and_exports_over_rest_need_a_recent_login(alice: User, monkeypatch: Any) -> None:
    rest = Rest.of(alice)
    assert rest.get("/auth/me/export").status_code == 200
    monkeypatch.setattr("core.http.reauthentication.RECENT_SECONDS", -1)
    for answer in (
        rest.get("/auth/me/export"),
        rest.post("/auth/api-keys", {"name": "a", "scopes": ["read"]}),
        # Before the body and the row are looked at.
        rest.put("/webhook", {"url": 1}),
        rest.patch(f"/auth/api-keys/{alice.pk}", {"scopes": 1}),
        rest.post(f"/auth/api-keys/{alice.pk}/rotate", {"overlap_hours": "x"}),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "login_too_old")


def test_a_refresh_is_no_recent_login(alice: User) -> None:
    pair = issue_tokens(user=alice)
    at = user_for_access_token(pair.access)[1]
    assert user_for_access_token(refresh_tokens(refresh=pair.refresh).access)[1] == at


@pytest.mark.django_db(transaction=True)
def test_a_login_over_rest_from_a_new_network_is_mailed_once(alice: User, charlie: User) -> None:
    for address in ("203.0.113.1", "198.51.100.1", "198.51.100.77", "203.0.113.9"):
        login.log_in(email=alice.email, password=PASSWORD, address=address, site="https://a.test")
    assert subjects() == "New login from a program at 198.51.100.1 on ACE Platform"
    assert mail.outbox[0].to == [alice.email]


@pytest.mark.parametrize("page", ["add/", "{}/change/", "{}/password/"])
def test_a_form_of_the_admin_asks_for_the_password_again(
    staff: User, alice: User, page: str
) -> None:
    User.objects.filter(pk=staff.pk).update(is_superuser=True)
    url = f"/admin/accounts/user/{page.format(alice.pk)}"
    sent = {"email": "mallory@example.org", "password1": PASSWORD, "password2": PASSWORD}
    late = logged_in_client(staff, minutes_ago=6).post(url, sent)
    assert "/settings/confirm" in late["Location"]
    assert not User.objects.filter(email=sent["email"]).exists()
    alice.refresh_from_db()
    assert alice.check_password(PASSWORD)
    assert "/settings/confirm" not in logged_in_client(staff).post(url, sent).get("Location", "")
