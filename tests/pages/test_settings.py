"""The account settings pages: login, second factor, e-mail, sessions, LLM key."""

import json
import re
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.core import mail
from django.test import Client
from pytest_django import Settings

from accounts.keys.jwt_tokens import issue_tokens, user_for_access_token
from accounts.models import LlmKey, User
from accounts.web.urls import urlpatterns
from core.errors import NotAuthenticated
from core.http.safe_http import FetchedResponse
from core.models import AuditEntry
from tests.factories import PASSWORD
from tests.harness.clients import logged_in_client
from tests.harness.mfa import recovery_codes, set_up_totp, totp_code

NEW = "another long password"
DEVICE = "device"


def credentials(user: User) -> dict[str, str]:
    return {"email": user.email, "password": PASSWORD}


@pytest.fixture
def fresh(alice: User) -> Client:
    """Alice, who has just logged in by the form: nothing asks who she is again."""
    client = Client()
    client.post("/login", credentials(alice))
    return client


def test_a_login_with_an_app_asks_for_its_code(client: Client, alice: User) -> None:
    secret = set_up_totp(alice)
    assert client.post("/login?next=/keys", credentials(alice))["Location"] == "/login/code"
    assert client.get("/keys").status_code == 302
    done = client.post("/login/code", {"code": totp_code(secret)})
    assert done["Location"] == "/keys"
    assert client.get("/keys").status_code == 200


def test_a_recovery_code_logs_in_too(client: Client, alice: User) -> None:
    set_up_totp(alice)
    client.post("/login", credentials(alice))
    assert client.post("/login/code", {"code": recovery_codes(alice)[0]}).status_code == 302
    assert client.get("/keys").status_code == 200


def test_wrong_codes_are_refused_and_throttled(client: Client, alice: User) -> None:
    set_up_totp(alice)
    client.post("/login", credentials(alice))
    answers = [client.post("/login/code", {"code": "000000"}).status_code for _ in range(6)]
    assert answers == [200] * 5 + [429]
    assert client.get("/keys").status_code == 302


def test_the_code_page_without_a_password_redirects_to_login(client: Client, db: None) -> None:
    assert client.get("/login/code")["Location"] == "/login"


def test_login_starts_a_new_session_and_sets_the_device_cookie(client: Client, alice: User) -> None:
    client.get("/login")
    client.session.save()
    before = client.session.session_key
    client.post("/login", credentials(alice))
    assert client.session.session_key != before
    cookie = client.cookies[DEVICE]
    assert (bool(cookie["httponly"]), cookie["samesite"]) == (True, "Lax")


def test_an_attacker_never_delays_the_users_own_browser(fresh: Client, alice: User) -> None:
    attacker = Client()
    wrong = credentials(alice) | {"password": "wrong"}
    answers = [attacker.post("/login", wrong).status_code for _ in range(8)]
    assert answers[-1] == 429
    fresh.post("/logout")
    assert fresh.post("/login", credentials(alice)).status_code == 302


def test_an_app_is_set_up_by_its_code(
    fresh: Client, alice: User, django_capture_on_commit_callbacks: Any
) -> None:
    page = fresh.get("/settings/second-factor/app").content.decode()
    found = re.search(r'<code class="secret">(\w+)</code>', page)
    assert found
    with django_capture_on_commit_callbacks(execute=True):
        done = fresh.post("/settings/second-factor/app", {"code": totp_code(found[1])})
    assert done["Location"] == "/settings/second-factor/codes"
    assert Authenticator.objects.filter(user=alice).count() == 2
    assert AuditEntry.objects.filter(action="set_up_second_factor").exists()
    assert "second factor was set up" in mail.outbox[-1].subject


def test_an_old_login_requires_reauthentication(alice: User) -> None:
    owner = logged_in_client(alice, minutes_ago=6)
    asked = owner.get("/settings/second-factor/app")
    assert asked["Location"].startswith("/settings/confirm?next=")
    assert owner.post(asked["Location"], {"password": "wrong"}).status_code == 200
    done = owner.post(asked["Location"], {"password": PASSWORD})
    assert done["Location"] == "/settings/second-factor/app"
    assert owner.get("/settings/second-factor/app").status_code == 200


def test_staff_without_a_second_factor_are_sent_to_set_one_up(
    admin_page: Client, staff: User, settings: Settings
) -> None:
    settings.STAFF_SECOND_FACTOR = True
    assert admin_page.get("/admin/")["Location"] == "/settings/second-factor"
    assert admin_page.get("/playbooks").status_code == 200
    set_up_totp(staff)
    assert admin_page.get("/admin/").status_code == 200


def test_a_required_second_factor_blocks_all_other_pages(owner: Client, alice: User) -> None:
    alice.second_factor_required = True
    alice.save()
    for address in ("/", "/playbooks", "/keys", "/settings", "/settings/export"):
        assert owner.get(address)["Location"] == "/settings/second-factor", address
    assert owner.get("/settings/second-factor").status_code == 200
    assert owner.post("/logout").status_code == 302


def test_a_new_password_ends_the_other_sessions(fresh: Client, alice: User) -> None:
    other = Client()
    other.post("/login", credentials(alice))
    assert other.get("/keys").status_code == 200
    sent = {"current": PASSWORD, "password": NEW}
    assert fresh.post("/settings/password", sent)["Location"] == "/settings"
    assert (fresh.get("/keys").status_code, other.get("/keys").status_code) == (200, 302)


def test_the_browser_that_changed_the_password_stays_known(fresh: Client, alice: User) -> None:
    fresh.post("/settings/password", {"current": PASSWORD, "password": NEW})
    attacker = Client()
    answers = [attacker.post("/login", credentials(alice)).status_code for _ in range(8)]
    assert answers[-1] == 429
    fresh.post("/logout")
    sent = credentials(alice) | {"password": NEW}
    assert fresh.post("/login", sent).status_code == 302


def test_a_session_is_ended_from_the_list(fresh: Client, alice: User) -> None:
    other = Client(headers={"user-agent": "Lynx/2.9"})
    other.post("/login", credentials(alice))
    page = fresh.get("/settings/sessions").content.decode()
    assert "Lynx/2.9" in page
    session = UserSession.objects.get(user_agent="Lynx/2.9")
    assert fresh.post(f"/settings/sessions/{session.pk}/end").status_code == 302
    assert other.get("/keys").status_code == 302


def test_all_other_sessions_are_ended_at_once(fresh: Client, alice: User) -> None:
    others = [Client(), Client()]
    for other in others:
        other.post("/login", credentials(alice))
    fresh.post("/settings/sessions", {"yes": "1"})
    assert [other.get("/keys").status_code for other in others] == [302, 302]
    assert fresh.get("/keys").status_code == 200


def test_another_users_session_is_not_found(fresh: Client, stranger: Client) -> None:
    session = UserSession.objects.get()
    assert stranger.post(f"/settings/sessions/{session.pk}/end").status_code == 404
    assert fresh.get("/keys").status_code == 200


def test_an_email_link_is_confirmed_by_a_button(client: Client, db: None) -> None:
    client.post("/register", {"email": "dora@example.org", "password": PASSWORD})
    link = re.findall(r"http://testserver(/verify/\S+)", str(mail.outbox[-1].body))[0]
    assert client.get(link).status_code == 200
    assert not User.objects.get().email_verified
    assert client.post(link, {"password": PASSWORD})["Location"] == "/login"
    assert User.objects.get().email_verified
    assert client.get(link).status_code == 400


def test_a_forgotten_password_is_reset_by_email(client: Client, alice: User) -> None:
    assert client.post("/login/reset", {"email": alice.email})["Location"] == "/login"
    link = re.findall(r"http://testserver(/login/reset/\S+)", str(mail.outbox[-1].body))[0]
    assert client.post(link, {"password": "short"}).status_code == 422
    assert client.post(link, {"password": NEW})["Location"] == "/login"
    assert client.get(link).status_code == 404
    assert client.post("/login", credentials(alice) | {"password": NEW}).status_code == 302


def test_a_reset_answers_the_same_for_every_address(client: Client, alice: User) -> None:
    pages = [
        client.post("/login/reset", {"email": email}, follow=True).content
        for email in (alice.email, "nobody@example.org")
    ]
    token = rb'value="[0-9A-Za-z]{64}"|<code>[0-9a-f]{32}</code>'
    assert len({re.sub(token, b"", page) for page in pages}) == 1


def test_an_llm_key_is_set_and_never_shown(fresh: Client, alice: User) -> None:
    key = "sk-canary-0123456789"
    done = fresh.post("/settings/llm-key", {"api_key": key, "base_url": ""}, follow=True)
    assert "ends in" in done.content.decode()
    for address in ("/settings/llm-key", "/settings"):
        assert key not in fresh.get(address).content.decode()
    assert fresh.post("/settings/llm-key/remove").status_code == 302
    assert not LlmKey.objects.exists()


def test_tests_of_an_llm_key_are_rate_limited(
    fresh: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"try_llm_key": "2/h"}
    tried: list[str] = []

    def fetch(url: str, **_: object) -> FetchedResponse:
        tried.append(url)
        return FetchedResponse(200, {}, b"{}")

    monkeypatch.setattr("accounts.keys.llm_keys.fetch", fetch)
    fresh.post("/settings/llm-key", {"api_key": "sk-canary-0123456789", "base_url": ""})
    pages = [fresh.post("/settings/llm-key/test", follow=True).content.decode() for _ in range(3)]
    assert ["Key works" in page for page in pages] == [True, True, False]
    assert "Over the limit" in pages[2]
    assert len(tried) == 2


def test_an_internal_llm_endpoint_is_refused_on_its_field(fresh: Client) -> None:
    sent = {"api_key": "sk-0123456789", "base_url": "https://127.0.0.1/v1"}
    answer = fresh.post("/settings/llm-key", sent)
    assert answer.status_code == 422
    assert "not on the public internet" in answer.content.decode()


def test_an_account_is_exported_and_deleted(fresh: Client, alice: User) -> None:
    made = fresh.post("/settings/export", {"yes": "1"})
    assert (made["Content-Type"], made["Cache-Control"]) == ("application/zip", "no-store")
    assert fresh.post("/settings/delete", {"email": "other@example.org"}).status_code == 422
    assert fresh.post("/settings/delete", {"email": "Alice@example.org"})["Location"] == "/"
    assert not User.objects.filter(pk=alice.pk).exists()
    assert fresh.get("/keys").status_code == 302


def test_export_and_deletion_require_reauthentication(alice: User) -> None:
    owner = logged_in_client(alice, minutes_ago=6)
    for page in ("export", "delete", "llm-key", "email"):
        asked = owner.post(f"/settings/{page}", {"email": alice.email})
        assert asked["Location"].startswith("/settings/confirm"), page
    assert User.objects.filter(pk=alice.pk).exists()


def test_a_key_posted_before_reauthentication_is_not_stored(alice: User) -> None:
    owner = logged_in_client(alice, minutes_ago=6)
    asked = owner.post("/settings/llm-key", {"api_key": "sk-canary-0123456789"})
    kept = [row.get_decoded() for row in Session.objects.all()]
    assert "sk-canary" not in json.dumps(kept)
    done = owner.post(asked["Location"], {"password": PASSWORD})
    assert done["Location"] == "/settings/llm-key"
    assert not LlmKey.objects.exists()


def test_a_new_second_factor_ends_the_sessions_without_it(
    fresh: Client, alice: User, django_capture_on_commit_callbacks: Any
) -> None:
    other, tokens = Client(), issue_tokens(user=alice)
    other.post("/login", credentials(alice))
    page = fresh.get("/settings/second-factor/app").content.decode()
    secret = re.findall(r'<code class="secret">(\w+)</code>', page)[0]
    with django_capture_on_commit_callbacks(execute=True):
        fresh.post("/settings/second-factor/app", {"code": totp_code(secret)})
    assert (fresh.get("/keys").status_code, other.get("/keys").status_code) == (200, 302)
    with pytest.raises(NotAuthenticated):
        user_for_access_token(tokens.access)


def test_every_account_page_requires_login(client: Client, db: None) -> None:
    for pattern in urlpatterns:
        path = str(pattern.pattern)
        if path.startswith("settings") and "<" not in path:
            answer = client.get(f"/{path}")
            assert answer.status_code in {302, 405}, path
            assert answer.get("Location", "/login").startswith("/login"), path
