"""/metrics: protected, and the same figures whoever answers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import DjangoAssertNumQueries, Settings

from accounts.models import User
from accounts.services.user_administration import delete_user
from core.security.scopes import Principal
from evolution.models import EvolutionJob, Outcome
from evolution.worker.tasks import run_evolution
from playbooks.models import Playbook
from tests.factories import make_outcome, make_playbook, make_review_item

TOKEN = "a-token-for-the-scraper-1"


@pytest.fixture
def client(settings: Settings) -> Client:
    settings.METRICS_TOKEN = TOKEN
    return Client(headers={"Authorization": f"Bearer {TOKEN}"})


def figures(client: Client) -> dict[str, float]:
    """Every sample by its name and labels."""
    text = client.get("/metrics").content.decode()
    return {
        f"{sample.name}{sorted(sample.labels.values())}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_without_a_token_in_the_settings_there_is_no_such_page(db: None) -> None:
    assert Client().get("/metrics").status_code == 404


@pytest.mark.parametrize("sent", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", "Bearer ünï"])
def test_another_token_is_refused(client: Client, db: None, sent: str) -> None:
    answer = client.get("/metrics", headers={"Authorization": sent})
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")


def test_staff_may_look_and_others_may_not(client: Client, staff: User, alice: User) -> None:
    for user, status in ((staff, 200), (alice, 401)):
        page = Client()
        page.force_login(user)
        assert page.get("/metrics").status_code == status


def test_staff_without_their_second_factor_may_not_look(
    client: Client, staff: User, settings: Settings
) -> None:
    settings.STAFF_SECOND_FACTOR = True
    page = Client()
    page.force_login(staff)
    assert page.get("/metrics").status_code == 401


def test_the_loop_is_counted_from_its_rows(
    client: Client, job: EvolutionJob, playbook: Playbook, alice: User
) -> None:
    run_evolution(str(job.pk))
    make_outcome(playbook, alice, outcome="failure")
    make_review_item(playbook, "Read https://a.example first.")
    found = figures(client)
    assert found["ace_outcomes_total['self_report', 'success']"] == 1
    assert found["ace_outcomes_pending[]"] == 1
    assert found["ace_evolutions_total['', 'completed', 'manual']"] == 1
    assert found["ace_evolution_seconds_bucket['+Inf']"] == 1
    assert found["ace_deltas_total['ADD', 'applied']"] > 0
    assert found["ace_pending_reviews[]"] == 1


def test_counters_do_not_fall_when_an_account_is_erased(
    client: Client, job: EvolutionJob, alice: User, charlie: User
) -> None:
    run_evolution(str(job.pk))
    before = figures(client)
    delete_user(user=alice, by=Principal.of(charlie))
    assert Outcome.objects.count() == 0
    erased, again = figures(client), figures(client)
    counters = [
        name for name in before if re.match(r"ace_(?!http).*(_total|_bucket|_count|_sum)\[", name)
    ]
    assert len(counters) > 10
    for found in (erased, again):
        assert {n: found[n] for n in counters} == {n: before[n] for n in counters}
    make_outcome(make_playbook(charlie), charlie)
    name = "ace_outcomes_total['self_report', 'success']"
    assert figures(client)[name] == before[name] + 1


def test_a_failure_is_counted_with_its_reason(client: Client, job: EvolutionJob) -> None:
    EvolutionJob.objects.filter(pk=job.pk).update(status="failed", error_code="poison")
    assert figures(client)["ace_evolutions_total['failed', 'manual', 'poison']"] == 1


def test_an_empty_platform_has_figures_too(client: Client, db: None) -> None:
    found = figures(client)
    assert found["ace_jobs['running']"] == 0
    assert found["ace_worker_heartbeat_age_seconds[]"] == float("inf")


def test_requests_are_timed_by_route_and_not_by_address(client: Client, db: None) -> None:
    for name in ("one", "two"):
        client.get(f"/playbooks/{name}-no-such-page")
    client.get("/healthz")
    names = [name for name in figures(client) if name.startswith("ace_http_request_seconds_count")]
    assert any("healthz" in name for name in names)
    assert not any("no-such-page" in name for name in names)


def test_a_made_up_method_is_no_label(client: Client, db: None) -> None:
    client.generic("PLANET", "/healthz")
    assert not any("PLANET" in name for name in figures(client))


def test_the_number_of_queries_does_not_grow(
    client: Client, job: EvolutionJob, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(27):
        client.get("/metrics")


COUNT = """
import os, django
django.setup()
from config.observability.metrics import render_metrics, observe_request
observe_request("GET", "pages", 200, 0.01)
print(render_metrics().decode() if os.environ.get("TELL") else "")
"""


def test_any_process_reports_what_others_counted(tmp_path: Path) -> None:
    """prometheus_client's files: two processes count one request each, the last one tells."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "config.settings.base",
        "ACE_DATA_DIR": str(tmp_path),
        "METRICS_TOKEN": TOKEN,
    }
    environment.pop("DATABASE_URL", None)
    command = [
        sys.executable,
        "-c",
        COUNT.replace("render_metrics()", "render_metrics(rows=False)"),
    ]
    for report in ("", "1"):
        output = subprocess.run(
            command,
            env={**environment, "TELL": report},
            cwd=django_settings.BASE_DIR,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    assert 'ace_http_request_seconds_count{method="GET",route="pages",status="2xx"} 2.0' in output
