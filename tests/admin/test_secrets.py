"""No page of the admin shows a secret."""

from typing import Any

from allauth.mfa.models import Authenticator
from django.contrib import admin
from django.db import models
from django.test import Client

from accounts.admin.oauth import HiddenAdmin
from accounts.models import ApiKey, LoginAttempts, RefreshToken, User
from billing.models import Limit, Plan, PriceOverride
from core.admin import ReadOnlyAdmin
from tests.factories import make_key
from tests.harness.admin_client import AdminClient
from tests.harness.clients import logged_in_client

SECRET = (
    "token",
    "digest",
    "secret",
    "password",
    "encrypted_key",
    "payload",
    "session_key",
    "code",
)
SAFE = {"code", "error_code", "wait_code", "reason_code", "token_count", "token_budget"} | {
    *("token_totals", "prompt_tokens", "completion_tokens", "cached_tokens", "total_tokens"),
    *("tokens", "expected_tokens", "token_family"),
    *("tokens_used", "tokens_held", "held_tokens"),
}


def test_a_users_page_has_no_part_of_the_hash(desk: AdminClient, alice: User) -> None:
    _, salt, digest = alice.password.split("$")
    page = desk.row(alice)
    assert salt[:4] not in page
    assert digest[:6] not in page
    assert 'value="Set a password…"' in page
    assert "password1" in desk.act("set_password", alice)


def test_a_keys_page_has_no_digest_and_no_secret(desk: AdminClient, alice: User) -> None:
    key, token = make_key(alice)
    pages = desk.row(key) + desk.rows("accounts_apikey")
    assert key.digest not in pages
    assert token[20:] not in pages


def test_refresh_tokens_and_login_attempts_are_not_in_the_admin() -> None:
    assert not {RefreshToken, LoginAttempts} & set(admin.site._registry)


def test_admin_lists_leave_out_fields_that_sound_secret() -> None:
    shown = [
        f"{model._meta.label}.{field.name}"
        for model, page in admin.site._registry.items()
        for field in model._meta.fields
        if sounds_secret(field) and field.name not in hidden(page)
        if not isinstance(page, HiddenAdmin)
    ]
    assert shown == []


def sounds_secret(field: "models.Field[Any, Any]") -> bool:
    return any(word in field.name for word in SECRET) and field.name not in SAFE


def hidden(page: "admin.ModelAdmin[Any]") -> set[str]:
    """What the page leaves out."""
    model, left = page.model, set(page.exclude or ())
    if page.fields is None and page.fieldsets is None:
        return left
    shown = {name for _, part in page.get_fieldsets(None) for name in part["fields"]}  # type: ignore[arg-type]  # no request is needed
    return left | {field.name for field in model._meta.fields} - shown


def test_machine_written_models_are_read_only() -> None:
    by_hand = {User, Limit, PriceOverride, Plan}
    others = {type(page) for model, page in admin.site._registry.items() if model not in by_hand}
    assert [page for page in others if not issubclass(page, ReadOnlyAdmin)] == []


def test_the_secret_of_a_second_factor_stays_hidden(desk: AdminClient, alice: User) -> None:
    row = Authenticator.objects.create(user=alice, type="totp", data={"secret": "canary"})
    assert "canary" not in desk.row(row) + desk.rows("mfa_authenticator")


def test_a_key_of_a_disabled_user_is_marked(desk: AdminClient, alice: User) -> None:
    make_key(alice)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert "user disabled" in desk.rows("accounts_apikey")
    assert ApiKey.objects.usable().count() == 0


def test_disabled_staff_lose_admin_access(staff: User) -> None:
    client: Client = logged_in_client(staff)
    User.objects.filter(pk=staff.pk).update(is_active=False)
    assert client.get("/admin/").status_code == 302
