"""E-mails at 80% and at 100% of a limit: one each, for each period and limit."""

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.core.mail import EmailMessage

from accounts.models import User
from billing.limits.quota import (
    QuotaExceeded,
    record_quota_exceeded,
    reserve_evolution,
    send_quota_notices,
    settle_evolution,
)
from billing.models import Plan, QuotaPeriod
from tests.billing.test_metering import begin, finish
from tests.harness.concurrency import run_concurrently
from tests.harness.plans import set_limits, set_usage


def evolve(user: User) -> None:
    period = reserve_evolution(user.pk)
    assert period is not None
    settle_evolution(period, counts=True)


def send_notices(mailoutbox: list[EmailMessage]) -> list[str]:
    cache.delete("quota-notices")  # they are sent once a minute
    send_quota_notices()
    return [str(email.subject) for email in mailoutbox]


@pytest.fixture
def five(billing: Plan) -> Plan:
    set_limits(billing, monthly_evolutions=5)
    return billing


def test_eighty_and_one_hundred_percent_are_notified_once_each(
    alice: User, five: Plan, mailoutbox: list[EmailMessage]
) -> None:
    subjects = []
    for _ in range(5):
        evolve(alice)
        subjects = send_notices(mailoutbox)
    assert subjects == [
        "You've used 80% of your monthly evolutions",
        "Monthly evolution limit reached",
    ]
    assert {email.to[0] for email in mailoutbox} == {alice.email}
    assert "the 5 evolutions" in str(mailoutbox[0].body)


def test_below_eighty_percent_nobody_is_notified(
    alice: User, five: Plan, mailoutbox: list[EmailMessage]
) -> None:
    for _ in range(3):
        evolve(alice)
    assert send_notices(mailoutbox) == []


def test_a_refusal_is_notified_as_limit_reached(
    alice: User, five: Plan, mailoutbox: list[EmailMessage]
) -> None:
    set_usage(alice, evolutions_used=5)
    for _ in range(2):
        with pytest.raises(QuotaExceeded) as reached:
            evolve(alice)
        record_quota_exceeded(reached.value, user_id=alice.pk)
    assert send_notices(mailoutbox) == ["Monthly evolution limit reached"]


def test_a_new_period_sends_new_notices(
    alice: User, five: Plan, mailoutbox: list[EmailMessage]
) -> None:
    set_usage(alice, evolutions_used=4)
    evolve(alice)
    assert len(send_notices(mailoutbox)) == 1
    for period in QuotaPeriod.objects.all():
        period.start -= timedelta(days=40)
        period.save()
    set_usage(alice, evolutions_used=4)
    evolve(alice)
    assert len(send_notices(mailoutbox)) == 2


def test_a_deactivated_user_gets_no_email(
    alice: User, five: Plan, mailoutbox: list[EmailMessage]
) -> None:
    set_usage(alice, evolutions_used=4)
    evolve(alice)
    User.objects.update(is_active=False)
    assert send_notices(mailoutbox) == []


@pytest.mark.django_db(transaction=True)
def test_five_concurrent_sweeps_send_one_email(
    alice: User,
    five: Plan,
    mailoutbox: list[EmailMessage],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_usage(alice, evolutions_used=4)
    evolve(alice)
    monkeypatch.setattr(cache, "add", lambda *_: True)  # hosts whose sweeps overlap
    run_concurrently(5, lambda _: send_quota_notices())
    assert len(mailoutbox) == 1


def test_a_call_near_the_limit_is_notified_without_a_change_of_the_month(
    alice: User, billing: Plan, mailoutbox: list[EmailMessage]
) -> None:
    set_limits(billing, monthly_tokens=10)
    month = set_usage(alice)
    finish(begin(alice, quota_period_id=month.pk))
    QuotaPeriod.objects.update(updated_at=month.start - timedelta(days=1))
    assert send_notices(mailoutbox) == ["Monthly token limit reached"]


def test_a_limit_on_cost_is_named_whole(
    alice: User, billing: Plan, mailoutbox: list[EmailMessage]
) -> None:
    set_limits(billing, monthly_usd=5)
    set_usage(alice, usd_used=5)
    assert send_notices(mailoutbox) == ["Monthly model cost limit reached"]
