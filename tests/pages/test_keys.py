"""The keys page: its order, and what it does with old keys."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.keys.api_keys import revoke_api_key, rotate_api_key
from accounts.models import ApiKey, User
from tests.factories import make_key

NEW_KEY = {"name": "laptop", "scopes": ["read", "write"], "days": "90"}


def test_a_refused_form_can_be_submitted_again(owner: Client) -> None:
    assert owner.post("/keys", NEW_KEY | {"name": ""}).status_code == 422
    assert owner.post("/keys", NEW_KEY).status_code == 201


def test_a_page_that_is_reloaded_makes_no_second_key(owner: Client, alice: User) -> None:
    form = owner.get("/keys").context["form"]
    sent = NEW_KEY | {"id": str(form["id"].value())}
    again = [owner.post("/keys", sent) for _ in range(2)][1]
    assert (again.status_code, ApiKey.objects.count()) == (409, 1)
    assert "This key already exists" in again.content.decode()


def test_a_key_is_rotated_once(owner: Client, alice: User) -> None:
    address = reverse("accounts:rotate_key", args=[make_key(alice)[0].pk])
    assert owner.post(address, {"overlap": "24"}).status_code == 201
    again = owner.post(address, {"overlap": "24"})
    assert (again.status_code, "was already rotated" in again.content.decode()) == (409, True)
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


def test_active_keys_are_shown_page_by_page(
    owner: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.web.api_key_views.PAGE_SIZE", 2)
    for name in ("first", "second", "third"):
        make_key(alice, name=name)
    newest = owner.get("/keys")
    assert [key.name for key in newest.context["keys"]] == ["third", "second"]
    assert "Older →" in newest.content.decode()
    older = owner.get("/keys", {"before": newest.context["keys"].older})
    assert [key.name for key in older.context["keys"]] == ["first"]
