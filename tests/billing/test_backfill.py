"""`manage.py backfill_prices` sets unknown costs and changes nothing else."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from accounts.models import User
from billing.models import PriceOverride, UsageRecord
from billing.pricing import backfill
from billing.pricing.calculator import Price
from billing.pricing.usage_pricing import price_usage
from core.models import AuditEntry
from tests.billing.test_metering import begin, finish
from tests.billing.test_price_overrides import make_price

pytestmark = pytest.mark.postgres


@pytest.fixture
def unknown(alice: User) -> list[UsageRecord]:
    return [finish(begin(alice), model="our-own-7b") for _ in range(5)]


def run(*options: str, capsys: pytest.CaptureFixture[str]) -> str:
    call_command("backfill_prices", *options)
    return capsys.readouterr().out


def costs() -> list[Any]:
    return list(UsageRecord.objects.order_by("created_at").values_list("cost_usd", flat=True))


def test_without_apply_nothing_changes(
    unknown: list[UsageRecord], capsys: pytest.CaptureFixture[str]
) -> None:
    price = make_price()
    output = run(capsys=capsys)
    assert "5 of 5 calls would be repriced" in output
    assert f"override {price.pk}/1" in output
    assert costs() == [None] * 5
    assert not AuditEntry.objects.filter(action="backfill_prices").exists()


def test_apply_prices_unknown_costs_in_batches_with_an_audit_entry_each(
    unknown: list[UsageRecord],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_price()
    monkeypatch.setattr(backfill, "BATCH_SIZE", 2)
    output = run("--apply", capsys=capsys)
    assert "5 of 5 calls repriced" in output
    assert costs() == [Decimal("0.003000")] * 5
    entries = AuditEntry.objects.filter(action="backfill_prices")
    assert sorted(entry.detail["calls"] for entry in entries) == [1, 2, 2]
    assert not UsageRecord.objects.filter(metadata__has_key="no_price").exists()


def test_a_second_run_changes_nothing(
    unknown: list[UsageRecord], capsys: pytest.CaptureFixture[str]
) -> None:
    make_price()
    run("--apply", capsys=capsys)
    assert "0 of 0 calls" in run("--apply", capsys=capsys)


def test_calls_that_stay_unknown_are_listed_and_skipped(
    alice: User, unknown: list[UsageRecord], capsys: pytest.CaptureFixture[str]
) -> None:
    finish(begin(alice), model="our-own-70b")
    make_price(model="our-own-70b")
    output = run("--apply", capsys=capsys)
    assert "1 of 6 calls repriced" in output
    assert "Still unknown: 5 of our-own-7b" in output


def test_a_killed_run_keeps_its_batches_and_the_next_continues(
    unknown: list[UsageRecord],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_price()

    def die(call: UsageRecord, overrides: list[PriceOverride]) -> Price:
        if call == unknown[4]:
            raise KeyboardInterrupt
        return price_usage(call, overrides)

    monkeypatch.setattr(backfill, "BATCH_SIZE", 2)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(backfill, "price_usage", die)
        backfill.backfill_prices(apply=True)
    assert costs().count(None) == 1
    assert "1 of 1 calls repriced" in run("--apply", capsys=capsys)


def test_known_costs_stay(alice: User, capsys: pytest.CaptureFixture[str]) -> None:
    finish(begin(alice))
    make_price(model="gpt-4o-mini*")
    assert "0 of 0 calls" in run("--apply", capsys=capsys)
    assert costs() == [Decimal("0.000450")]


def test_each_call_has_the_price_of_its_time(
    unknown: list[UsageRecord], capsys: pytest.CaptureFixture[str]
) -> None:
    old = timezone.now() - timedelta(days=60)
    UsageRecord.objects.filter(pk=unknown[0].pk).update(created_at=old)
    make_price(valid_from=timezone.now() - timedelta(days=30))
    run("--apply", capsys=capsys)
    assert costs() == [None] + [Decimal("0.003000")] * 4
