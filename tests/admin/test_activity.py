"""The activity log shows all changes to one's own account, and no others."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.activity import describe_action
from accounts.models import User
from core import audit
from core.security.scopes import Principal
from playbooks.models import Playbook
from playbooks.services.settings import archive_playbook
from tests.factories import make_key
from tests.harness.clients import log_in_client

PAGE = "/activity"


def text(client: Client, **query: str) -> str:
    answer = client.get(PAGE, query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_owner_sees_all_changes(owner: Client, playbook: Playbook, alice: User) -> None:
    key, _ = make_key(alice)
    page = text(owner)
    assert "Imported playbook" in page
    assert "Fixing tests" in page
    assert playbook.get_absolute_url() in page
    assert "Created API key" in page
    assert f"prefix: {key.prefix}" in page


def test_changes_by_staff_are_shown_without_their_name(
    owner: Client, playbook: Playbook, staff: User
) -> None:
    archive_playbook(playbook=playbook, by=Principal.of(staff))
    page = text(owner)
    assert "Archived playbook" in page
    assert staff.email not in page


def test_other_users_and_staff_see_only_their_own(
    stranger: Client, desk_client: Client, playbook: Playbook
) -> None:
    for client in (stranger, desk_client):
        assert str(playbook.pk) not in text(client)


@pytest.fixture
def desk_client(staff: User) -> Client:
    client = Client()
    log_in_client(client, staff)
    return client


def test_the_activity_page_requires_login(client: Client, db: None) -> None:
    assert client.get(PAGE).status_code == 302


def test_the_newest_entries_are_on_the_first_page(owner: Client, alice: User) -> None:
    for _ in range(60):
        audit.record(action="log_in", by=alice, subject=alice)
    make_key(alice)
    page = text(owner)
    assert "Created API key" in page
    assert 'rel="next"' in page


def test_more_entries_cost_no_more_queries(owner: Client, alice: User) -> None:
    counts = []
    for entries in (1, 40):
        for _ in range(entries):
            audit.record(action="log_in", by=alice, subject=alice)
        with CaptureQueriesContext(connection) as found:
            text(owner)
        counts.append(len(found))
    assert counts[0] == counts[1] <= 8


def test_a_rollback_is_named_in_english() -> None:
    assert describe_action("rollback_playbook") == "Rolled back playbook"
    assert describe_action("rollback_source") == "Rolled back source"
