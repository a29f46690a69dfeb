"""The keys page: its order, and that reloading a form creates nothing twice."""

import re
from datetime import timedelta

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.keys.api_keys import revoke_api_key, rotate_api_key
from accounts.models import ApiKey, User
from tests.factories import make_key

NEW_KEY = {"name": "laptop", "scopes": ["read", "write"], "days": "90", "form_id": "form-1"}
SHOWN_ALREADY = "already created and shown"


def test_reloading_the_page_with_the_secret_creates_no_second_key(owner: Client) -> None:
    first = owner.post("/keys", NEW_KEY)
    again = owner.post("/keys", NEW_KEY, follow=True)
    assert (first.status_code, ApiKey.objects.count()) == (201, 1)
    assert SHOWN_ALREADY in again.content.decode()
    assert first.context["token"] not in again.content.decode()


def test_every_form_has_its_own_id(owner: Client) -> None:
    pattern = r'name="form_id" value="(\w{32})"'
    first, second = (re.findall(pattern, owner.get("/keys").content.decode())[0] for _ in range(2))
    assert first != second


def test_a_refused_form_can_be_submitted_again(owner: Client) -> None:
    assert owner.post("/keys", NEW_KEY | {"name": ""}).status_code == 422
    assert owner.post("/keys", NEW_KEY).status_code == 201


def test_two_users_may_submit_the_same_form_id(owner: Client, stranger: Client) -> None:
    assert [one.post("/keys", NEW_KEY).status_code for one in (owner, stranger)] == [201, 201]


def test_reloading_after_a_rotation_creates_no_third_key(owner: Client, alice: User) -> None:
    address = reverse("accounts:rotate_key", args=[make_key(alice)[0].pk])
    owner.post(address, {"overlap": "24"})
    again = owner.post(address, {"overlap": "24"}, follow=True)
    assert SHOWN_ALREADY in again.content.decode()
    assert ApiKey.objects.count() == 2


def test_active_keys_come_first_and_inactive_ones_are_folded(owner: Client, alice: User) -> None:
    old, fresh, gone = (make_key(alice, name=name)[0] for name in ("old", "fresh", "gone"))
    revoke_api_key(key=gone, reason="lost")
    ApiKey.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=1))
    page = owner.get("/keys")
    assert [key.name for key in page.context["keys"]] == [fresh.name, old.name]
    assert [key.name for key in page.context["inactive"]] == ["gone"]
    assert "Inactive keys (1)" in page.content.decode()


def test_a_replaced_key_is_still_active_and_cannot_be_rotated_again(
    owner: Client, alice: User
) -> None:
    key, _ = make_key(alice)
    rotate_api_key(key=key)
    page = owner.get("/keys").content.decode()
    assert "replaced, still active" in page
    assert reverse("accounts:rotate_key", args=[key.pk]) not in page


def test_an_expired_key_is_inactive(owner: Client, alice: User) -> None:
    key, _ = make_key(alice)
    ApiKey.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    assert owner.get("/keys").context["inactive"] == [key]
