"""Search: Ctrl+K, REST and the documentation, within one's own rows and a bounded cost."""

import csv
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from config.search.queries import search
from core.security.scopes import Principal
from evolution.models import Outcome
from playbooks.models import Playbook
from tests.factories import make_outcome, make_playbook
from tests.harness.rest_client import Rest


@pytest.fixture
def playbook(alice: User) -> Playbook:
    found = make_playbook(alice, name="Payment webhooks")
    make_outcome(found, alice, task_description="Retry the zebra webhook", notes="It was late.")
    return found


def found_by(user: User, words: str) -> list[tuple[str, str]]:
    answer = Rest.of(user).get(f"/search?{urlencode({'q': words})}").json()
    return [(one["kind"], one["id"]) for one in answer["results"]]


def test_each_kind_is_found_by_its_words(alice: User, playbook: Playbook) -> None:
    outcome = Outcome.objects.get()
    assert found_by(alice, "webhooks payment") == [("playbook", str(playbook.pk))]
    assert found_by(alice, "zebra LATE") == [("outcome", str(outcome.pk))]
    assert found_by(alice, "smallest change") == [("bullet", "str-00002")]
    assert found_by(alice, "mis-00003")[0] == ("bullet", "mis-00003")
    assert found_by(alice, "payment v1")[0] == ("version", "1")
    assert ("documentation", "") in found_by(alice, "quickstart")
    assert found_by(alice, "zebra nosuchword") == []


def test_a_stranger_and_staff_find_nothing_of_others(
    alice: User, charlie: User, staff: User, playbook: Playbook
) -> None:
    for words in ("webhooks", "zebra", "smallest", "mis-00003", "v1"):
        assert [it for it in found_by(charlie, words) if it[0] != "documentation"] == []
        assert [it for it in found_by(staff, words) if it[0] != "documentation"] == []


def test_a_key_limited_to_a_playbook_finds_no_other(alice: User, playbook: Playbook) -> None:
    other = make_playbook(alice, name="Zebra rides")
    by = Principal.of(alice)
    limited = Principal(alice, by.scopes, playbook_ids=frozenset({other.pk}))
    assert [one.label for one in search(limited, "zebra")] == ["Zebra rides"]


def test_without_words_nothing_is_found(alice: User, playbook: Playbook) -> None:
    assert found_by(alice, " ") == []


@pytest.mark.parametrize(
    "words", ["%", "_" * 120, "a " * 60, "\x00", "((", "v" + "9" * 30, "' OR 1"]
)
def test_hostile_words_cost_no_more(alice: User, playbook: Playbook, words: str) -> None:
    rest = Rest.of(alice)
    with CaptureQueriesContext(connection) as asked:
        assert rest.get(f"/search?{urlencode({'q': words})}").status_code in {200, 400}
    assert len(asked) <= 12


def test_outcomes_are_searched_up_to_a_number(
    alice: User, playbook: Playbook, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        make_outcome(playbook, alice, task_description=f"Zebra {number}")
    rows = Outcome.objects.filter(playbook=playbook)
    assert {row.task_description for row in rows.matching("zebra", among=2)} == {
        "Zebra 1",
        "Zebra 2",
    }


def test_active_playbooks_are_searched_before_archived_ones(
    alice: User, playbook: Playbook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("config.search.queries.PLAYBOOKS", 1)
    archived = make_playbook(alice, name="Changed last")
    make_outcome(archived, alice, task_description="Zebra of the archived one")
    Playbook.objects.filter(pk=archived.pk).update(status="archived")
    outcome = Outcome.objects.get(playbook=playbook)
    assert found_by(alice, "zebra") == [("outcome", str(outcome.pk))]


def test_the_palette_shows_what_was_found_by_kind(
    owner: Client, stranger: Client, playbook: Playbook
) -> None:
    page = owner.get("/go?q=zebra", headers={"HX-Request": "true"}).content.decode()
    assert "Retry the zebra webhook" in page
    assert page.index(">Outcomes<") > 0
    assert "zebra webhook" not in stranger.get("/go?q=zebra").content.decode()


def test_the_documentation_is_searched_by_anybody(client: Client) -> None:
    page = client.get("/docs/search?q=seals").content.decode()
    assert "/docs/" in page
    assert "No results" in client.get("/docs/search?q=nosuchword").content.decode()
    assert client.get("/docs/search").status_code == 200


def test_outcomes_are_filtered_by_words_and_days_and_downloaded(
    owner: Client, stranger: Client, alice: User, playbook: Playbook
) -> None:
    make_outcome(playbook, alice, task_description="=cmd()")
    url, today = f"/playbooks/{playbook.pk}/outcomes", f"{timezone.localdate()}"
    assert (
        "zebra webhook" in owner.get(f"{url}?q=zebra&since={today}&until={today}").content.decode()
    )
    assert "=cmd" not in owner.get(f"{url}?q=zebra").content.decode()
    assert "zebra webhook" not in owner.get(f"{url}?until=2020-01-01").content.decode()
    text = owner.get(f"{url}?format=csv").content.decode()
    rows = list(csv.DictReader(text.splitlines()))
    assert {row["task_description"] for row in rows} == {"Retry the zebra webhook", "'=cmd()"}
    assert stranger.get(f"{url}?format=csv").status_code == 404
