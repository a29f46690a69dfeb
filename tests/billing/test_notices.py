"""Letters at 80 % and at all of a limit: one each, for each period and limit."""

import uuid
from datetime import timedelta

import pytest
from django.core.mail import EmailMessage

from accounts.models import User
from billing.models import Plan, QuotaNotice, QuotaPeriod, Resource
from billing.notices import send_quota_notices
from billing.quota import QuotaReached, note_reached, reserve, settle
from tests.billing.plans import limit, use
from tests.concurrency.threads import at_once


def evolve(user: User) -> None:
    holder = uuid.uuid4()
    reserve(
        user_id=user.pk,
        resource=Resource.EVOLUTIONS,
        amount=1,
        holder_id=holder,
        lifetime=timedelta(minutes=1),
    )
    settle(resource=Resource.EVOLUTIONS, holder_id=holder, actual=1)


def letters(mailoutbox: list[EmailMessage]) -> list[str]:
    send_quota_notices()
    return [str(letter.subject) for letter in mailoutbox]


@pytest.fixture
def five(billing: Plan) -> Plan:
    limit(billing, monthly_evolutions=5)
    return billing


def test_eighty_percent_and_all_of_it_are_told_once_each(
    alice: User, five: Plan, mailoutbox: list[EmailMessage]
) -> None:
    subjects = []
    for _ in range(5):
        evolve(alice)
        subjects = letters(mailoutbox)
    assert subjects == [
        "You have used 80 % of your evolutions this month",
        "You have used all evolutions of this month",
    ]
    assert {letter.to[0] for letter in mailoutbox} == {alice.email}
    assert "the 5 evolutions" in str(mailoutbox[0].body)


def test_below_eighty_percent_nobody_is_told(
    alice: User, five: Plan, mailoutbox: list[EmailMessage]
) -> None:
    for _ in range(3):
        evolve(alice)
    assert letters(mailoutbox) == []


def test_a_refusal_is_told_as_all_of_it(
    alice: User, five: Plan, mailoutbox: list[EmailMessage]
) -> None:
    use(alice, evolutions_used=5)
    for _ in range(2):
        with pytest.raises(QuotaReached) as reached:
            evolve(alice)
        note_reached(reached.value, user_id=alice.pk)
    assert letters(mailoutbox) == ["You have used all evolutions of this month"]


def test_a_new_period_is_told_anew(alice: User, five: Plan, mailoutbox: list[EmailMessage]) -> None:
    use(alice, evolutions_used=4)
    evolve(alice)
    for period in QuotaPeriod.objects.all():
        period.start -= timedelta(days=40)
        period.save()
    use(alice, evolutions_used=4)
    evolve(alice)
    assert len(letters(mailoutbox)) == 2


def test_somebody_who_is_locked_out_gets_no_letter(
    alice: User, five: Plan, mailoutbox: list[EmailMessage]
) -> None:
    use(alice, evolutions_used=4)
    evolve(alice)
    User.objects.update(is_active=False)
    assert letters(mailoutbox) == []


@pytest.mark.django_db(transaction=True)
def test_five_sweeps_at_once_send_one_letter(
    alice: User, five: Plan, mailoutbox: list[EmailMessage]
) -> None:
    use(alice, evolutions_used=4)
    evolve(alice)
    at_once(5, lambda _: send_quota_notices())
    assert len(mailoutbox) == QuotaNotice.objects.count() == 1
