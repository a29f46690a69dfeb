"""Registration, login, logout, API keys."""

import pytest
from django.conf import settings
from django.test import Client, override_settings
from django.urls import reverse

from accounts.models import ApiKey, User
from tests.factories import PASSWORD, make_key

CREDENTIALS = {"email": "alice@example.org", "password": PASSWORD}
NEW_KEY = {"name": "laptop", "scopes": ["read", "write"], "days": "90"}


def test_registration_redirects_to_login(client: Client, db: None) -> None:
    response = client.post("/register", {"email": "Dora@Example.org", "password": PASSWORD})
    assert response["Location"] == "/login"
    assert User.objects.get().email == "dora@example.org"


@override_settings(EMAIL_BACKEND="django.core.mail.backends.console.EmailBackend")
def test_registration_says_when_no_email_is_sent(client: Client, db: None) -> None:
    sent = {"email": "dora@example.org", "password": PASSWORD}
    page = client.post("/register", sent, follow=True).content.decode()
    assert "printed on the server" in page


def test_login_after_registration_has_the_address_filled_in(client: Client, db: None) -> None:
    client.post("/register", {"email": "dora@example.org", "password": PASSWORD})
    assert 'value="dora@example.org"' in client.get("/login").content.decode()
    assert "dora@example.org" not in client.get("/login").content.decode()


def test_a_weak_password_is_reported_on_its_field(client: Client, db: None) -> None:
    response = client.post("/register", {"email": "dora@example.org", "password": "short"})
    assert response.status_code == 422
    assert "at least 12 characters" in response.content.decode()


def test_login_redirects_to_the_requested_page(client: Client, alice: User) -> None:
    assert client.post("/login?next=/keys", CREDENTIALS)["Location"] == "/keys"


@pytest.mark.parametrize("wanted", ["https://evil.example/", "//evil.example", "javascript:x"])
def test_login_never_redirects_to_another_site(client: Client, alice: User, wanted: str) -> None:
    response = client.post("/login", CREDENTIALS | {"next": wanted})
    assert response["Location"] == "/"


def test_a_wrong_password_and_an_unknown_email_look_the_same(client: Client, alice: User) -> None:
    wrong = client.post("/login", CREDENTIALS | {"password": "wrong"})
    unknown = client.post("/login", CREDENTIALS | {"email": "nobody@example.org"})
    assert wrong.status_code == unknown.status_code == 401
    sentence = "Incorrect email or password"
    assert all(sentence in response.content.decode() for response in (wrong, unknown))


def test_too_many_logins_get_retry_after(client: Client, alice: User) -> None:
    answers = [client.post("/login", CREDENTIALS | {"password": "wrong"}) for _ in range(6)]
    assert answers[-1].status_code == 429
    assert int(answers[-1]["Retry-After"]) >= 1
    assert "Too many requests" in answers[-1].content.decode()


def test_logout_ends_the_session(owner: Client) -> None:
    owner.post("/logout")
    assert owner.get("/keys").status_code == 302


def test_a_new_key_is_shown_once_and_not_stored(owner: Client, alice: User) -> None:
    made = owner.post("/keys", NEW_KEY)
    assert (made.status_code, made["Cache-Control"]) == (201, "no-store")
    key = ApiKey.objects.get()
    secret = made.context["token"]
    assert secret.startswith(f"ace_live_{key.prefix}_")
    assert made.content.decode().count(secret) == 1
    assert secret not in owner.get("/keys").content.decode()


def test_a_key_can_be_limited_to_playbooks(owner: Client, playbook: object) -> None:
    pk = str(playbook.pk)  # type: ignore[attr-defined]  # the fixture is a Playbook
    owner.post("/keys", NEW_KEY | {"playbook_ids": [pk]})
    assert ApiKey.objects.get().playbook_ids == [pk]


def test_a_key_without_scopes_is_refused(owner: Client) -> None:
    response = owner.post("/keys", {"name": "laptop", "days": "90"})
    assert response.status_code == 422
    assert not ApiKey.objects.exists()


def test_a_key_is_revoked_after_confirmation(owner: Client, alice: User) -> None:
    key, _ = make_key(alice)
    address = reverse("accounts:revoke_key", args=[key.pk])
    assert "will be rejected" in owner.get(address).content.decode()
    owner.post(address, {"yes": "1"})
    key.refresh_from_db()
    assert key.state == "revoked"


def test_a_rotated_key_is_shown_once(owner: Client, alice: User) -> None:
    key, old = make_key(alice)
    made = owner.post(reverse("accounts:rotate_key", args=[key.pk]), {"overlap": "1"})
    assert (made.status_code, made["Cache-Control"]) == (201, "no-store")
    assert made.context["token"] != old


def test_a_form_without_csrf_token_gets_a_helpful_page(alice: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    response = strict.post("/login", CREDENTIALS)
    assert response.status_code == 403
    assert "This page expired" in response.content.decode()
    assert settings.CSRF_FAILURE_VIEW == "config.web.views.csrf_failure"
