"""Long lists, newest first: pages side by side hold every row once, and none counts them."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import AuditEntry, User
from accounts.paging import NewestFirst
from evolution.models import AgentSession, Outcome
from playbooks.models import Playbook
from tests.factories import make_outcome

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


def page_of(size: int = 2, **query: str) -> NewestFirst[Outcome]:
    return NewestFirst(Outcome.objects.all(), query, size=size)


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
    first = NewestFirst(entries, {}, size=2)
    second = NewestFirst(entries, {"before": first.older}, size=2)
    assert [one.action for one in (*first, *second)] == ["do_2", "do_1", "do_0"]
    assert second.newer


def test_the_link_to_older_sessions_leads_there(
    owner: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evolution.session_views.PAGE", 2)
    for number in range(3):
        AgentSession.objects.create(user=alice, title=f"the {number}.")
    page = owner.get("/sessions?status=open").content.decode()
    link = page.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    assert parse_qs(urlsplit(link).query)["status"] == ["open"]
    older = owner.get(f"/sessions{link}").content.decode()
    assert "the 0." in older
    assert "the 1." not in older


LISTS = ["", "status=failure", "status=set_aside", "status=pending", "version=1", "client=-",
         "signal=test"]  # fmt: skip


@pytest.mark.skipif(connection.vendor != "postgresql", reason="asks the planner of PostgreSQL")
@pytest.mark.parametrize("query", LISTS)
def test_a_list_of_outcomes_is_read_in_the_order_of_an_index(
    owner: Client, rows: list[Outcome], query: str
) -> None:
    path = f"{rows[0].playbook.get_absolute_url()}/outcomes?{query}"
    with CaptureQueriesContext(connection) as captured:
        owner.get(path)
    asked = [one["sql"] for one in captured if 'INNER JOIN "playbooks_version"' in one["sql"]]
    plan = plan_of(asked[-1])
    # Few rows are unprocessed and set aside; they may be passed over.
    assert "Sort" not in plan
    assert "Filter" not in plan.replace("Filter: ((set_aside_reason)::text = ''::text)", "")


def plan_of(sql: str) -> str:
    """How it is done where no other way is left but by an index."""
    with connection.cursor() as cursor:
        for way in ("seqscan", "bitmapscan", "sort", "hashjoin", "mergejoin"):
            cursor.execute(f"SET LOCAL enable_{way} = off")
        cursor.execute(f"EXPLAIN (COSTS OFF) {sql}")
        return "\n".join(line for (line,) in cursor.fetchall())
