"""A key's secret is in one no-store response, and never in another page, a log or a row."""

import logging

import pytest
from django.apps import apps
from django.test import Client
from django.urls import reverse

from accounts.models import ApiKey
from tests.harness.page_urls import ADMIN, common_pages, own_pages
from tests.harness.sample_account import World

NEW_KEY = {"name": "canary", "scopes": ["read", "write"], "days": "90"}


def make_and_rotate(owner: Client) -> list[str]:
    """Two secrets, each from the one answer that shows it."""
    made = owner.post("/keys", NEW_KEY)
    key = ApiKey.objects.get(name="canary")
    again = owner.post(reverse("accounts:rotate_key", args=[key.pk]), {"overlap": "24"})
    for response in (made, again):
        assert response["Cache-Control"] == "no-store"
        assert response.content.decode().count(response.context["token"]) == 1
        assert response.context["token"] not in str(response.headers)
    return [made.context["token"], again.context["token"]]


def rows() -> str:
    """Every row of every table, as text."""
    return "\n".join(str(list(model._base_manager.values())) for model in apps.get_models())


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_secret_is_shown_once_and_not_stored(
    owner: Client, admin_page: Client, world: World, caplog: pytest.LogCaptureFixture, step: int
) -> None:
    """By day on the page of keys, in the logs, in every row, and on a sample of other pages."""
    caplog.set_level(logging.DEBUG)
    secrets = make_and_rotate(owner)
    pages = ["/keys", "/usage.csv", *[*common_pages(), *own_pages(world)][::step]]
    seen = [owner.get(address).getvalue().decode() for address in pages]
    seen += [
        admin_page.get(address).getvalue().decode()
        for address in ("/admin/accounts/apikey/", *ADMIN[::step])
    ]
    seen += [rows(), caplog.text]
    for secret in secrets:
        assert not any(secret in text or secret[-20:] in text for text in seen)


def test_responses_with_secrets_are_no_store(owner: Client) -> None:
    made = owner.post("/keys", NEW_KEY)
    assert made.context["token"] not in str(owner.cookies)
    assert made.context["token"] not in str(dict(owner.session))
