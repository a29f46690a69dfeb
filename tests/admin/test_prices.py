"""Staff sets prices of their own, and reads what was used, summed up."""

from decimal import Decimal

import pytest

from accounts.models import User
from billing.models import Limit, PriceOverride, UsageRecord
from core.models import AuditEntry
from evolution.models import EvolutionJob
from playbooks.models import Playbook
from tests.factories import make_playbook
from tests.harness.admin_client import AdminClient, is_denied
from tests.harness.clients import logged_in_client
from tests.pages.test_usage import use

PRICES = "/admin/billing/priceoverride/"
SUMMARY = "/admin/billing/usagerecord/summary/"
SENT = {
    **{"model": "our-own-7b", "base_url": "", "input_usd": "1.5", "cached_usd": ""},
    **{"output_usd": "6", "note": "the contract", "valid_from_0": "", "valid_from_1": ""},
    **{"valid_until_0": "", "valid_until_1": ""},
}


def summary(desk: AdminClient, query: str = "") -> str:
    answer = desk.client.get(f"{SUMMARY}{query}")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_each_change_of_a_price_is_a_version_and_the_log_keeps_its_figures(
    desk: AdminClient,
) -> None:
    desk.client.post(f"{PRICES}add/", SENT)
    price = PriceOverride.objects.get()
    for figure in ("2", "2"):
        desk.client.post(f"{PRICES}{price.pk}/change/", SENT | {"input_usd": figure})
    price.refresh_from_db()
    assert (price.version, price.input_usd) == (2, Decimal(2))
    entries = AuditEntry.objects.filter(action="set_price").order_by("at")
    said = [(entry.detail["version"], entry.detail["input_usd"]) for entry in entries]
    assert said[:2] == [(1, "1.5"), (2, "2")]


def test_a_removed_price_is_in_the_log(desk: AdminClient) -> None:
    desk.client.post(f"{PRICES}add/", SENT)
    price = PriceOverride.objects.get()
    desk.client.post(f"{PRICES}{price.pk}/delete/", {"post": "yes"})
    assert not PriceOverride.objects.exists()
    assert AuditEntry.objects.filter(action="remove_price").count() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "*"},
        {"input_usd": "-1"},
        {"output_usd": ""},
        {
            **{"valid_from_0": "2026-02-01", "valid_from_1": "00:00"},
            **{"valid_until_0": "2026-01-01", "valid_until_1": "00:00"},
        },
    ],
)
def test_a_price_that_is_none_is_refused(desk: AdminClient, wrong: dict[str, str]) -> None:
    assert desk.client.post(f"{PRICES}add/", SENT | wrong).status_code == 200
    assert not PriceOverride.objects.exists()


def test_the_summary_parts_what_everybody_used(
    desk: AdminClient, alice: User, charlie: User
) -> None:
    playbook = make_playbook(alice)
    use(alice, playbook_id=playbook.pk)
    use(charlie, model="own-model", cost_usd=None, operation="reflect")
    parts = {
        "user": ("alice@example.org", "charlie@example.org"),
        "playbook": (str(playbook.pk), "none"),
        "model": ("gpt-4o-mini", "own-model"),
        "operation": ("curate", "reflect"),
        "key": ("none",),
        "day": (),
        "month": (),
    }
    for by, labels in parts.items():
        page = summary(desk, f"?by={by}")
        assert "unknown, at least $0.2500; 1 without a price: own-model" in page
        for label in labels:
            assert f">{label}</" in page, (by, label)


def test_the_summary_keeps_the_lists_filters_and_leads_back_to_its_calls(
    desk: AdminClient, alice: User
) -> None:
    use(alice)
    use(alice, operation="reflect", model="gpt-4o", days_ago=40)
    assert "gpt-4o-mini" not in summary(desk, "?operation__exact=reflect&span=all")
    assert ">gpt-4o<" not in summary(desk)
    page = summary(desk, "?by=user&q=alice&span=all")
    assert "?q=alice&amp;user__email=alice%40example.org" in page
    assert "2 usage records" in desk.rows("billing_usagerecord", user__email=alice.email)


def test_a_filter_that_is_none_is_a_bad_request(desk: AdminClient) -> None:
    assert desk.client.get(f"{SUMMARY}?no_such__exact=1").status_code in {302, 400}


def test_staff_sees_budgets_and_a_change_is_in_the_log(desk: AdminClient, alice: User) -> None:
    of = {"unit": "usd", "window": "day", "scope": "account"}
    row = Limit.objects.create(user=alice, set_by="owner", amount=Decimal(1), **of)
    sent = of | {"user": str(alice.pk), "amount": "2", "warn_percent": "80", "stops": "on"}
    desk.client.post(f"/admin/billing/limit/{row.pk}/change/", sent)
    row.refresh_from_db()
    assert (row.amount, row.set_by) == (Decimal(2), "owner")
    assert AuditEntry.objects.get(action="set_limit").owner_id == alice.pk


def test_only_staff_gets_there(alice: User) -> None:
    assert is_denied(
        logged_in_client(alice), SUMMARY, PRICES, f"{PRICES}add/", "/admin/billing/limit/"
    )


def test_an_evolutions_page_says_of_a_cost_with_an_unknown_part_what_it_is_at_least(
    desk: AdminClient, alice: User, playbook: Playbook
) -> None:
    job = EvolutionJob.objects.create(playbook=playbook, trigger="manual")
    for attempt, cost in enumerate((Decimal("0.25"), None), start=1):
        UsageRecord.objects.create(
            user=alice,
            job_id=job.pk,
            step="curate",
            attempt=attempt,
            operation="curate",
            status="answered",
            model="m",
            cost_usd=cost,
        )
    assert "unknown, at least $0.25" in desk.row(job)


@pytest.mark.parametrize(("whose", "made"), [("alice", 1), ("charlie", 0)])
def test_a_budget_is_set_for_nobody_elses_playbook(
    desk: AdminClient, alice: User, charlie: User, playbook: Playbook, whose: str, made: int
) -> None:
    user = {"alice": alice, "charlie": charlie}[whose]
    fields = {"user": str(user.pk), "playbook_id": str(playbook.pk), "amount": "5"}
    fields |= {"scope": "playbook", "unit": "usd", "window": "day", "warn_percent": "80"}
    desk.client.post("/admin/billing/limit/add/", fields)
    assert Limit.objects.filter(user=user).count() == made
