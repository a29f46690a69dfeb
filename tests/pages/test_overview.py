"""The overview of an account and of a playbook: figures, charts, and what was learned."""

from datetime import timedelta
from decimal import Decimal

from django.test import Client
from django.utils import timezone

from accounts.models import User
from billing.limits.spending import set_budget
from core.security.scopes import Principal
from evolution.evidence.trends import DAYS, trends_of
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob, Outcome
from evolution.worker.tasks import run_evolution
from playbooks.document.reason_codes import HELD_FULL
from playbooks.models import Delta, Playbook
from tests.factories import make_outcome, make_playbook, make_review_item


def report(playbook: Playbook, *, won: int, lost: int, days_ago: int) -> None:
    version = playbook.versions.get()
    at = timezone.now() - timedelta(days=days_ago)
    for status, count in (("success", won), ("failure", lost)):
        rows = Outcome.objects.bulk_create(
            Outcome(playbook=playbook, version=version, status=status, task_description="x")
            for _ in range(count)
        )
        Outcome.objects.filter(pk__in=[row.pk for row in rows]).update(created_at=at)


def test_the_change_compares_the_last_thirty_days_with_those_before(
    owner: Client, alice: User, playbook: Playbook
) -> None:
    report(playbook, won=4, lost=6, days_ago=45)
    report(playbook, won=6, lost=4, days_ago=2)
    report(playbook, won=50, lost=0, days_ago=DAYS + 2)
    trend = trends_of([playbook.pk])[playbook.pk]
    assert trend.change is not None
    assert (trend.change.before.tasks, trend.change.after.share) == (10, 0.6)
    for path in ("/overview", f"{playbook.get_absolute_url()}/overview"):
        page = " ".join(owner.get(path).content.decode().split())
        assert "60% <small>of 10 tasks" in page
        assert "+20 <small>points, could be chance" in page
    row = owner.get("/playbooks").content.decode()
    assert 'class="sparkline"' in row
    assert "+20 points, could be chance" in row


def test_the_last_evolutions_are_told_in_words(
    owner: Client, alice: User, playbook: Playbook
) -> None:
    make_outcome(playbook, alice, notes="Lesson: Ask for the failing test before the fix.")
    run_evolution(str(trigger_evolution(playbook=playbook, by=Principal.of(alice)).job.pk))
    for path in ("/overview", f"{playbook.get_absolute_url()}/overview"):
        page = owner.get(path).content.decode()
        assert "Ask for the failing test before the fix." in page
        assert "version 2</a>" in page


def test_nobody_else_sees_an_overview_or_is_counted_in_it(
    owner: Client, stranger: Client, admin_page: Client, charlie: User, playbook: Playbook
) -> None:
    report(make_playbook(charlie), won=3, lost=0, days_ago=1)
    assert "No outcomes in the last 60 days" in owner.get("/overview").content.decode()
    for other in (stranger, admin_page):
        assert other.get(f"{playbook.get_absolute_url()}/overview").status_code == 404


def test_the_figures_of_an_account_count_each_active_playbook_once(
    owner: Client, alice: User, charlie: User, playbook: Playbook
) -> None:
    failing, archived = (make_playbook(alice, name=name) for name in ("Failing", "Archived"))
    for each in (playbook, archived, make_playbook(charlie)):
        make_outcome(each, alice)
        for number in range(2):
            make_review_item(each, f"Read https://docs.example.org/{number} first.")
        EvolutionJob.objects.create(playbook=each, trigger="manual", status="failed")
    Delta.objects.update(reason_code=HELD_FULL)
    Playbook.objects.filter(pk=archived.pk).update(status="archived")
    for status in ("completed", "failed"):
        EvolutionJob.objects.create(playbook=failing, trigger="manual", status=status)
    mended = EvolutionJob.objects.create(playbook=playbook, trigger="manual", status="completed")
    found = {"playbooks": 2, "outcomes": 1, "pending": 1, "full": 1, "failing": 1}
    assert owner.get("/overview").context["totals"] == found
    mended.delete()
    assert owner.get("/overview").context["totals"] == found | {"failing": 2}


def test_each_chart_marks_versions_and_has_a_table_and_budgets_are_beside_it(
    owner: Client, alice: User, playbook: Playbook
) -> None:
    make_outcome(playbook, alice, notes="Lesson: Ask for the failing test before the fix.")
    run_evolution(str(trigger_evolution(playbook=playbook, by=Principal.of(alice)).job.pk))
    set_budget(by=Principal.of(alice), playbook_id=playbook.pk, usd_per_day=Decimal(5))
    page = owner.get(f"{playbook.get_absolute_url()}/overview").content.decode()
    assert '<g class="mark"><title>Version 2</title>' in page
    assert "Outcomes per day" in page
    assert page.index("<svg") < page.index("<summary>Show as table</summary>")
    assert "100%</td>" in page[page.index("<summary>Show as table") :]
    assert "Budget, today" in page and "of $5.00" in page
