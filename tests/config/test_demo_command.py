"""`manage.py demo`: a history that holds every promise of the loop, made once, gone whole."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.apps import apps
from django.conf import LazySettings, settings
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.db.models import Count, Sum
from django.test import Client
from django.utils import timezone

from accounts.models import User
from billing.models import UsageRecord
from config.demo.builder import EMAIL, build_demo, remove_demo
from config.demo.scenarios import SCENARIOS
from core.models import AuditEntry
from evolution.jobs.verification import Problem, verify_database
from evolution.models import AgentSession, EvolutionJob, Outcome, Reflection, WorkerHeartbeat
from evolution.worker.sweep import sweep
from playbooks.document.text import estimate_tokens
from playbooks.models import Playbook, ReviewItem, Trial, Version
from playbooks.starters.loader import load_starters
from tests.factories import make_playbook
from tests.harness.clients import logged_in_client

DAYS = 14
pytestmark = pytest.mark.django_db(transaction=True)


def counts() -> dict[str, int]:
    """How many rows each table of accounts has; the audit log only ever grows."""
    others = {AuditEntry, ContentType, WorkerHeartbeat}
    models = (model for model in apps.get_models() if model not in others)
    return {model._meta.label: model._base_manager.count() for model in models}


def verify_problems() -> list[Problem]:
    return [found for found in verify_database() if isinstance(found, Problem)]


def the_history_is_old_in_order_and_whole(demo: User) -> None:
    playbook = Playbook.objects.get(owner=demo)
    versions = list(Version.objects.filter(playbook=playbook).order_by("number"))
    ages = [version.created_at for version in versions]
    assert len(versions) > 2 and ages == sorted(ages)
    assert ages[0] < timezone.now() - timedelta(days=DAYS - 1)
    assert [p for p in verify_database([playbook.pk]) if isinstance(p, Problem)] == []


def evolutions_lie_within_the_history_and_went_by_the_playbooks_own_rules(demo: User) -> None:
    playbook = Playbook.objects.get(owner=demo)
    for job in EvolutionJob.objects.all():
        assert job.status == "completed" and job.completed_at is not None
        assert job.created_at <= job.completed_at < timezone.now()
        enough = job.outcomes_processed >= (playbook.outcome_threshold or 0) > 0
        assert enough or job.trigger == "manual"
    # Something waits, and a running worker leaves it to the person who looks.
    sweep()
    assert 0 < Outcome.objects.pending().count() < 5
    assert not EvolutionJob.objects.active().exists()


def everything_says_that_it_is_made_up(demo: User) -> None:
    playbook = Playbook.objects.get(owner=demo)
    assert playbook.name.startswith("Demo: ") and "Sample data" in playbook.description


def evolutions_and_usage_tell_the_same_calls_tokens_and_cost(demo: User) -> None:
    jobs = EvolutionJob.objects.exclude(outcomes_processed=0)
    totals = [job.token_totals for job in jobs]
    used = UsageRecord.objects.filter(user=demo).aggregate(
        calls=Count("pk"), total_tokens=Sum("total_tokens"), cost_usd=Sum("cost_usd")
    )
    assert {name: sum(Decimal(total[name]) for total in totals) for name in used} == used
    assert {job.token_totals["calls"] - job.outcomes_processed for job in jobs} == {1}
    browser, job = Client(), jobs.latest("created_at")
    browser.force_login(demo)
    page = browser.get(job.get_absolute_url()).content.decode()
    assert f"<dd>{job.token_totals['total_tokens']:,}</dd>" in page
    assert "<dt>Engine</dt><dd>openai</dd>" in page  # not the one that calls no model
    assert verify_problems() == []


def it_shows_sessions_keys_a_review_and_a_version_taken_back(demo: User) -> None:
    session = AgentSession.objects.exclude(outcome=None).earliest("created_at")
    assert session.outcome is not None and session.message_count == 4
    assert session.title and session.created_at < timezone.now() - timedelta(hours=1)
    keys = demo.api_keys.all()
    assert [(key.state, key.last_used_at is not None) for key in keys] == [("active", True)] * 2
    (waiting,) = ReviewItem.objects.pending()
    assert waiting.delta.reason_code == "held_command"
    worse = Trial.objects.filter(verdict=Trial.Verdict.WORSE)
    assert [trial.status for trial in worse] == ["ended"]
    assert "Reverted" in Version.objects.get(reason="reverted").deltas.all()[0].reason


def no_model_was_asked(demo: User) -> None:
    """At the address of the settings nobody answers."""
    assert set(EvolutionJob.objects.values_list("status", flat=True)) == {"completed"}
    assert settings.ACE_ENGINE == "openai"


def reflections_fit_their_tokens(demo: User) -> None:
    for row in Reflection.objects.all():
        record = UsageRecord.objects.get(step=f"reflect:{row.outcome_id}", job_id=row.job_id)
        assert row.tokens == record.total_tokens
        assert record.completion_tokens == estimate_tokens(str(row.content))


def test_the_demo_holds_every_promise_of_the_loop(
    subtests: pytest.Subtests, settings: LazySettings
) -> None:
    """Built once, which takes two seconds; what lets a sweep run comes last."""
    settings.TRIAL_MIN_TRAFFIC = 5
    settings.ACE_ENGINE, settings.OPENAI_BASE_URL = "openai", "http://127.0.0.1:1"
    demo = build_demo(password="look at this demo", days=DAYS, scenarios=SCENARIOS[:1])
    for promise in (
        no_model_was_asked,
        it_shows_sessions_keys_a_review_and_a_version_taken_back,
        reflections_fit_their_tokens,
        the_history_is_old_in_order_and_whole,
        everything_says_that_it_is_made_up,
        evolutions_and_usage_tell_the_same_calls_tokens_and_cost,
        evolutions_lie_within_the_history_and_went_by_the_playbooks_own_rules,
    ):
        with subtests.test(promise.__name__):
            promise(demo)


def test_it_is_made_once_and_taken_away_without_a_trace(alice: User, playbook: Playbook) -> None:
    load_starters()
    before = counts()
    for _ in range(2):
        call_command("demo", days=3, password="look at this demo", verbosity=0)
    assert User.objects.filter(email=EMAIL).count() == 1
    call_command("demo", remove=True)
    assert counts() == before
    assert not remove_demo()


def test_on_an_empty_database_the_first_login_is_made_before_it(capsys: Any, settings: Any) -> None:
    settings.PUBLIC_URL = "https://ace.example.org"
    call_command("demo", days=1)
    out = capsys.readouterr().out
    assert "First login, shown once: admin@localhost" in out
    assert f"Log in at https://ace.example.org/login as {EMAIL}" in out
    assert "DEMO_LOGIN=true" in out
    assert User.objects.filter(is_superuser=True).exclude(email=EMAIL).exists()


def test_a_person_with_the_demos_address_keeps_everything() -> None:
    User.objects.create_user(EMAIL, "a password of their own")
    for remove in (False, True):
        with pytest.raises(CommandError, match="registered by someone else"):
            call_command("demo", remove=remove)
    assert User.objects.filter(email=EMAIL).exists()


def test_where_plans_would_limit_it_it_says_so(settings: Any) -> None:
    settings.BILLING_ENABLED = True
    with pytest.raises(CommandError, match="BILLING_ENABLED=false"):
        call_command("demo")


def test_visitors_of_the_demo_look_at_everything_and_change_nothing(
    client: Client, settings: Any
) -> None:
    demo = User.objects.create_user(EMAIL, "look at this demo", settings={"demo": True})
    playbook = make_playbook(demo)
    assert "Try the demo" not in client.get("/").content.decode()
    assert client.post("/demo").status_code == 404
    settings.DEMO_LOGIN = True
    assert "Try the demo" in client.get("/").content.decode()
    assert client.post("/demo")["Location"] == "/overview"
    one = playbook.get_absolute_url()
    searches = ("/go?q=sql", "/docs/search?q=sql", "/api/docs", "/start")
    paths = ("/overview", one, f"{one}/evidence", "/inbox", "/sessions", "/keys", "/usage")
    for path in (*paths, *searches):
        page = client.get(path)
        assert (page.status_code, "Viewing the demo" in page.content.decode()) == (200, True)
    settings.DEMO_LOGIN = False
    refused = [client.post(f"{one}/{verb}") for verb in ("archive", "edit", "shares")]
    refused += [client.post("/keys"), client.post("/inbox"), client.post("/login")]
    refused += [client.get(path) for path in ("/settings", "/settings/sessions", "/activity")]
    assert {page.status_code for page in refused} == {403}
    assert "The demo is read-only" in refused[0].content.decode()
    assert Playbook.objects.get().status == "active"
    assert client.post("/logout").status_code == 302
    assert client.get("/keys").status_code == 302


def test_a_person_in_the_demos_address_or_logged_in_is_no_visitor(
    client: Client, alice: User, settings: Any
) -> None:
    settings.DEMO_LOGIN = True
    owner = logged_in_client(alice)
    assert owner.post("/demo")["Location"] == "/overview"
    assert "Viewing the demo" not in owner.get("/overview").content.decode()
    User.objects.create_user(EMAIL, "a password of their own")
    assert client.post("/demo").status_code == 409
