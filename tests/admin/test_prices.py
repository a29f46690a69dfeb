"""Staff sets prices of their own, and budgets."""

from decimal import Decimal

import pytest

from accounts.models import User
from billing.models import Limit, PriceOverride, UsageRecord
from core.models import AuditEntry
from evolution.models import EvolutionJob
from playbooks.models import Playbook
from tests.harness.admin_client import AdminClient, is_denied
from tests.harness.clients import logged_in_client

PRICES = "/admin/billing/priceoverride/"
SENT = {
    **{"model": "our-own-7b", "base_url": "", "input_usd": "1.5", "cached_usd": ""},
    **{"output_usd": "6", "note": "the contract", "valid_from_0": "", "valid_from_1": ""},
    **{"valid_until_0": "", "valid_until_1": ""},
}


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


def test_staff_sees_budgets_and_a_change_is_in_the_log(desk: AdminClient, alice: User) -> None:
    of = {"unit": "usd", "window": "day", "scope": "account"}
    row = Limit.objects.create(user=alice, set_by="owner", amount=Decimal(1), **of)
    sent = of | {"user": str(alice.pk), "amount": "2", "warn_percent": "80", "stops": "on"}
    desk.client.post(f"/admin/billing/limit/{row.pk}/change/", sent)
    row.refresh_from_db()
    assert (row.amount, row.set_by) == (Decimal(2), "owner")
    assert AuditEntry.objects.get(action="set_limit").owner_id == alice.pk


def test_only_staff_gets_there(alice: User) -> None:
    pages = ("/admin/billing/usagerecord/", PRICES, f"{PRICES}add/", "/admin/billing/limit/")
    assert is_denied(logged_in_client(alice), *pages)


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
