"""GET /activity: the activity log, as on the page."""

import pytest
from django.test import Client

from accounts.activity.entries import describe_action
from accounts.models import User
from core.security.scopes import Principal, Scope
from playbooks.models import Playbook
from playbooks.services.settings import archive_playbook
from tests.factories import make_key
from tests.harness.rest_client import Rest


def test_the_owner_reads_what_was_done_and_who_did_it(playbook: Playbook, alice: User) -> None:
    key, _ = make_key(alice)
    archive_playbook(playbook=playbook, by=Principal(alice, frozenset(Scope), key))
    first, *rest = Rest.of(alice).get("/activity").json()["results"]
    assert (first["action"], first["summary"]) == ("archive_playbook", "Archived playbook")
    assert (first["by"], first["key"]) == ("key", f"ace_live_{key.prefix}")
    assert (first["subject_name"], first["subject_id"]) == (playbook.name, str(playbook.pk))
    assert {"create_api_key", "import_playbook"} <= {one["action"] for one in rest}


def test_page_and_rest_show_the_same(client: Client, playbook: Playbook, alice: User) -> None:
    client.force_login(alice)
    page = client.get("/activity").content.decode()
    for one in Rest.of(alice).get("/activity").json()["results"]:
        assert one["summary"] in page
        assert one["subject_name"] in page
        assert one["detail"] in page


def test_strangers_and_staff_read_their_own_only(
    playbook: Playbook, charlie: User, staff: User
) -> None:
    for who in (charlie, staff):
        assert str(playbook.pk) not in Rest.of(who).get("/activity").content.decode()


def test_staff_actions_are_shown_without_their_name(
    playbook: Playbook, alice: User, staff: User
) -> None:
    archive_playbook(playbook=playbook, by=Principal.of(staff))
    answer = Rest.of(alice).get("/activity?who=staff&what=playbooks")
    assert [one["by"] for one in answer.json()["results"]] == ["staff"]
    assert staff.email not in answer.content.decode()


def test_the_pages_go_from_newest_to_oldest(alice: User) -> None:
    for number in range(3):
        make_key(alice, name=f"key {number}")
    rest, seen = Rest.of(alice), []
    address = "/activity?page_size=2&what=keys"
    while address:
        page = rest.get(address).json()
        seen += [one["subject_name"] for one in page["results"]]
        address = (page["next"] or "").partition("/api/v1")[2]
    assert seen == ["key 2", "key 1", "key 0"]


@pytest.mark.parametrize("query", ["what=secrets", "who=charlie", "page_size=0"])
def test_an_unknown_choice_is_refused_with_its_field(alice: User, query: str) -> None:
    answer = Rest.of(alice).get(f"/activity?{query}")
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (
        400,
        [query.partition("=")[0]],
    )


def test_a_rollback_is_named_in_english() -> None:
    assert describe_action("rollback_playbook") == "Rolled back playbook"
    assert describe_action("rollback_source") == "Rolled back source"
