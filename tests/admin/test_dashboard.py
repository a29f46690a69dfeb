"""The operations panel: its figures, where they lead, and what it costs."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from billing.models import UsageRecord
from config.admin_site.dashboard import read_dashboard
from evolution.models import EvolutionJob, Outcome, WorkerHeartbeat
from tests.factories import make_outcome, make_playbook
from tests.harness.admin_client import AdminClient
from tests.harness.sample_account import World

QUERIES = 11
"""One for the database's clock, and one for each source of figures."""


def figures() -> dict[str, str]:
    return {figure.label: figure.value for figure in read_dashboard().figures}


def test_the_figures_are_those_of_the_rows(world: World) -> None:
    found = figures()
    assert found["Failed today"] == "1"
    assert found["Waiting to retry"] == "1"
    assert (found["Queued"], found["Running"], found["Stuck"]) == ("0", "0", "0")
    assert found["Worker"] == "alive"
    assert found["Outcomes, last hour"] == str(Outcome.objects.count())


def test_unknown_costs_are_said(world: World) -> None:
    found = UsageRecord.objects.all()
    found.update(created_at=timezone.now(), cost_usd="0.5")
    found.filter(model="gpt-4o").update(cost_usd=None)
    figure = next(figure for figure in read_dashboard().figures if figure.label == "Spent today")
    calls, unknown = found.count(), found.filter(cost_usd=None).count()
    assert figure.value == f"${(calls - unknown) * 0.5:.2f}"
    assert figure.note == f"{calls} calls, {unknown} with an unknown price"
    assert "cost_usd__isempty=1" in figure.href


def test_a_silent_worker_and_a_stuck_job_need_a_look(world: World) -> None:
    WorkerHeartbeat.objects.update(last_seen_at=timezone.now() - timedelta(minutes=5))
    late = timezone.now() - timedelta(hours=1)
    EvolutionJob.objects.filter(pk=world.queued.pk).update(next_attempt_at=late)
    bad = {figure.label for figure in read_dashboard().figures if figure.tone == "bad"}
    assert bad == {"Worker", "Stuck", "Failed today"}


def test_every_figure_leads_to_its_list(desk: AdminClient, world: World) -> None:
    page = desk.client.get("/admin/operations/", headers={"HX-Request": "true"}).content.decode()
    addresses = [unescape(found) for found in re.findall(r'href="(/[^"]+)"', page)]
    assert len(addresses) == len(read_dashboard().figures)
    assert {desk.client.get(address).status_code for address in addresses} == {200}


def test_the_lists_behind_the_figures_hold_as_many_rows(desk: AdminClient, world: World) -> None:
    assert "1 evolution<" in squeezed(desk.rows("evolution_evolutionjob", state="failed_today"))
    assert "1 evolution<" in squeezed(desk.rows("evolution_evolutionjob", state="waiting"))
    assert "0 evolutions<" in squeezed(desk.rows("evolution_evolutionjob", state="stuck"))


def squeezed(page: str) -> str:
    return re.sub(r"\s+(?=<)", "", page)


def test_more_rows_cost_no_more_queries(world: World, alice: User) -> None:
    with CaptureQueriesContext(
        connection,
    ) as before:
        read_dashboard()
    for name in "abc":
        make_outcome(make_playbook(alice, name=name), alice)
    with CaptureQueriesContext(connection) as after:
        read_dashboard()
    assert (len(before), len(after)) == (QUERIES, QUERIES)


def test_it_asks_for_itself_again_without_a_script_of_its_own(
    desk: AdminClient, world: World
) -> None:
    page = desk.client.get("/admin/").content.decode()
    assert 'hx-get="/admin/operations/?days=1" hx-trigger="every 15s"' in page


@pytest.mark.parametrize("who", ["owner", "client"])
def test_a_session_that_ended_is_sent_to_the_login(
    who: str, request: pytest.FixtureRequest, db: None
) -> None:
    client: Client = request.getfixturevalue(who)
    answer = client.get("/admin/operations/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer["HX-Redirect"] == "/login?next=%2Fadmin%2F"
