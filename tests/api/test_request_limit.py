"""Everybody has so many requests a minute, pages and REST together, and so much to store."""

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.models import User
from core.ratelimit import limits
from core.security.scopes import Principal
from playbooks.models import Playbook
from playbooks.services.settings import archive_playbook
from tests.factories import ACE_TEXT, make_playbook
from tests.harness.clients import logged_in_client
from tests.harness.plans import limit_account
from tests.harness.rest_client import Rest


@pytest.fixture
def limit(settings: Settings) -> int:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"requests": "3/h"}
    limits._counts.clear()
    return 3


def test_requests_over_the_limit_get_a_429_with_headers(
    alice: User, charlie: User, staff: User, limit: int
) -> None:
    rest, page = Rest.of(alice), logged_in_client(alice)
    answers = [rest.get("/playbooks"), page.get("/playbooks"), rest.get("/playbooks")]
    assert [a.status_code for a in answers] == [200] * 3
    assert [a["RateLimit-Remaining"] for a in answers] == ["2", "1", "0"]
    paths = "/playbooks", "/api/v1/playbooks"
    for refused in (rest.get("/playbooks"), *map(page.get, paths)):
        assert refused.status_code == 429
        assert refused["Retry-After"] == refused["RateLimit-Reset"]
        assert 0 < int(refused["Retry-After"]) <= 3600
        assert refused["RateLimit-Limit"] == "3"
    assert rest.get("/playbooks").json()["error"]["code"] == "rate_limited"
    for other in (charlie, staff):
        assert Rest.of(other).get("/playbooks").status_code == 200
    assert Client().get("/login").status_code == 200


def test_playbooks_are_created_at_a_limited_rate(alice: User, settings: Settings) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"create_playbook": "2/h"}
    rest = Rest.of(alice)
    statuses = [
        rest.post("/playbooks/import", {"name": "a", "content": ACE_TEXT}) for _ in range(3)
    ]
    assert [a.status_code for a in statuses] == [201, 201, 429]


@pytest.mark.parametrize("unit", ["stored_playbooks", "stored_versions"])
def test_archived_playbooks_count_for_what_is_stored(alice: User, charlie: User, unit: str) -> None:
    limit_account(unit, "any", 2)
    for _ in range(2):
        archive_playbook(playbook=make_playbook(alice), by=Principal.of(alice))
    refused = Rest.of(alice).post("/playbooks", {"name": "a"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "storage_limit")
    assert Playbook.objects.filter(owner=alice).count() == 2
    assert Rest.of(charlie).post("/playbooks", {"name": "a"}).status_code == 201


def test_the_bytes_of_old_versions_count(alice: User) -> None:
    limit_account("stored_mb", "any", 1)
    playbook = make_playbook(alice)
    assert playbook.stored_bytes == len(playbook.current_version.text.encode())  # type: ignore[union-attr]  # it has one
    Playbook.objects.filter(pk=playbook.pk).update(stored_bytes=1_999_900)
    rest, path = Rest.of(alice), f"/playbooks/{playbook.pk}/deltas"
    add = {"type": "ADD", "section": "str", "content": "Read the log first."}
    refused = rest.post(path, {"operations": [add]})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "storage_limit")
    limit_account("stored_mb", "any", None)
    assert rest.post(path, {"operations": [add]}).status_code == 201
