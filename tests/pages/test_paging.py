"""Long lists, newest first: pages side by side hold every row once, and none counts them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from core.http.pagination import KeysetPage
from core.models import AuditEntry
from evolution.models import AgentSession, Outcome
from playbooks.models import Playbook
from tests.factories import make_outcome
from tests.harness.rest_client import Rest

pytestmark = pytest.mark.postgres

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
LATER = timedelta(seconds=1)


@pytest.fixture
def rows(playbook: Playbook, alice: User) -> list[Outcome]:
    """Seven outcomes, newest first; three of them of one moment."""
    first = make_outcome(playbook, alice)
    moments = [0, 1, 2, 2, 2, 3, 4]
    Outcome.objects.bulk_create(
        Outcome(playbook=playbook, version=first.version, created_at=BEGAN + LATER * moment)
        for moment in moments
    )
    first.delete()
    return list(Outcome.objects.order_by("-created_at", "-pk"))


def page_of(size: int = 2, **query: str) -> KeysetPage[Outcome]:
    return KeysetPage(Outcome.objects.all(), query, size=size)


def test_older_pages_hold_every_row_once(rows: list[Outcome]) -> None:
    page, seen = page_of(), []
    while page.older:
        seen += list(page)
        page = page_of(before=page.older)
    assert [*seen, *page] == rows


def test_newer_pages_lead_back_to_the_first(rows: list[Outcome]) -> None:
    page = page_of(before=page_of(before=page_of().older).older)
    assert list(page) == rows[4:6]
    page = page_of(after=page.newer)
    assert list(page) == rows[2:4]
    assert list(page_of(after=page.newer)) == rows[:2]
    assert page_of(after=page.newer).newer == ""


def test_a_list_that_fits_has_no_page_beside_it(rows: list[Outcome]) -> None:
    assert page_of(size=7).is_all
    assert not page_of(size=6).is_all


MARKS = ["x", "1", "-", "9" * 19 + "-0", "1-x", "١-0", "0-" + "f" * 32, "9" * 5000]


@pytest.mark.parametrize("mark", MARKS, ids=range(len(MARKS)))
def test_a_mark_of_no_place_shows_the_first_page(
    owner: Client, rows: list[Outcome], mark: str
) -> None:
    path = f"{rows[0].playbook.get_absolute_url()}/outcomes"
    for way in ("before", "after"):
        page = owner.get(path, {way: mark}).context["page"]
        assert list(page) == rows


def test_the_log_is_paged_by_its_number(alice: User) -> None:
    made = [AuditEntry.objects.create(action=f"do_{n}", owner_id=alice.pk) for n in range(3)]
    entries = AuditEntry.objects.filter(pk__in=[one.pk for one in made])
    first = KeysetPage(entries, {}, size=2)
    second = KeysetPage(entries, {"before": first.older}, size=2)
    assert [one.action for one in (*first, *second)] == ["do_2", "do_1", "do_0"]
    assert second.newer


def test_the_link_to_older_sessions_leads_there(
    owner: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evolution.web.session_views.PAGE_SIZE", 2)
    for number in range(3):
        AgentSession.objects.create(user=alice, title=f"the {number}.")
    page = owner.get("/sessions?status=open").content.decode()
    link = page.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    assert parse_qs(urlsplit(link).query)["status"] == ["open"]
    older = owner.get(f"/sessions{link}").content.decode()
    assert "the 0." in older
    assert "the 1." not in older


LISTS = ["", "status=failure", "status=set_aside", "status=pending", "version=2", "client=-",
         "signal=human"]  # fmt: skip
MANY = 2_000


@pytest.mark.skipif(connection.vendor != "postgresql", reason="asks PostgreSQL what it read")
def test_a_page_reads_few_of_many_outcomes(
    owner: Client, rows: list[Outcome], playbook: Playbook
) -> None:
    shown = {"client": "codex", "status": "success", "processed_at": BEGAN, "signal": "test"}
    made = {"playbook": playbook, "version": rows[0].version} | shown
    Outcome.objects.bulk_create(Outcome(**made) for _ in range(MANY))
    with connection.cursor() as cursor:
        # Dead rows of the tests before change what a plan costs: the table is written anew.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("CLUSTER evolution_outcome USING evolution_outcome_pkey")
        cursor.execute("ANALYZE evolution_outcome")
    path = f"{playbook.get_absolute_url()}/outcomes"
    read = {query: rows_read(owner, f"{path}?{query}") for query in LISTS}
    assert {query: count for query, count in read.items() if count > 200} == {}


INDEXES = {
    "": "outcome_of_playbook",
    "status=failure": "outcome_by_status",
    "status=set_aside": "outcome_set_aside",
    "status=pending": "outcome_unprocessed",
    "version=2": "outcome_of_version",
    "signal=human": "outcome_by_signal",
    "client=codex": "outcome_of_playbook",
}


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans by its figures")
@pytest.mark.parametrize("query", INDEXES)
def test_each_list_is_read_from_its_index(
    query: str, owner: Client, rows: list[Outcome], playbook: Playbook
) -> None:
    version = rows[0].version
    playbook.versions.filter(pk=version.pk).update(number=2)
    Outcome.objects.create(playbook=playbook, version=version, client="codex", created_at=BEGAN)
    with CaptureQueriesContext(connection) as captured:
        owner.get(f"{playbook.get_absolute_url()}/outcomes?{query}")
    (asked,) = (one["sql"] for one in captured if "task_description" in one["sql"])
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {asked}")
        plan = " ".join(row[-1] for row in cursor.fetchall())
    assert f"INDEX {INDEXES[query]} " in plan, plan
    # Only rows of one moment are sorted.
    assert "B-TREE FOR ORDER BY" not in plan, plan


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans by its figures")
def test_lists_counts_and_inbox_of_an_account_are_read_from_their_indexes(
    owner: Client, alice: User, playbook: Playbook
) -> None:
    def plans(client: Any, path: str) -> list[str]:
        with CaptureQueriesContext(connection) as captured, connection.cursor() as cursor:
            client.get(path)
            asked = [one["sql"] for one in captured if "playbooks_" in one["sql"]]
            return [
                " ".join(row[-1] for row in cursor.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall())
                for sql in asked
            ]

    of_page = plans(owner, "/playbooks")
    assert any("INDEX playbook_changed" in plan and "B-TREE" not in plan for plan in of_page)
    assert any("COVERING INDEX playbook_changed" in plan for plan in of_page)
    assert any("INDEX trial_found_worse" in plan for plan in of_page), "the inbox of the header"
    (of_rest,) = (plan for plan in plans(Rest.of(alice), "/playbooks") if "LEFT-JOIN" in plan)
    assert "INDEX playbook_created" in of_rest
    assert "B-TREE FOR ORDER BY" not in of_rest


def rows_read(client: Client, path: str) -> int:
    """The most rows that one step of one query of this page handed on or passed over."""
    with CaptureQueriesContext(connection) as captured:
        client.get(path)
    asked = [one["sql"] for one in captured if one["sql"].startswith(("SELECT", "WITH"))]
    plans = []
    with connection.cursor() as cursor:
        for sql in asked:
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
            plans.append(cursor.fetchone()[0][0]["Plan"])
    return max(step for plan in plans for step in steps_of(plan))


def steps_of(plan: dict[str, Any]) -> Iterator[int]:
    passed_over = plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Join Filter", 0)
    yield (plan["Actual Rows"] + passed_over) * plan["Actual Loops"]
    for part in plan.get("Plans", ()):
        yield from steps_of(part)
