"""The inbox: what waits for its user only, decided one by one or together, and told by mail."""

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.core.mail import EmailMessage
from django.test import Client
from django.utils import timezone

from accounts.models import ApiKey, User
from evolution.inbox import inbox_count, inbox_items, send_inbox_emails, set_inbox_emails
from evolution.models import EvolutionJob
from playbooks.models import Delta, Playbook, ReviewItem, Trial
from tests.factories import make_key, make_outcome, make_playbook, make_review_item

TEXTS = [f"Read https://docs.example.org/{n} first." for n in range(3)]


@pytest.fixture
def waiting(playbook: Playbook) -> list[ReviewItem]:
    return [make_review_item(playbook, text) for text in TEXTS]


def failed_job(playbook: Playbook) -> EvolutionJob:
    return EvolutionJob.objects.create(
        playbook=playbook,
        trigger="manual",
        status="failed",
        error_message="The model's answers could not be used.",
        completed_at=timezone.now(),
    )


def everything_else(playbook: Playbook, owner: User) -> EvolutionJob:
    """A failed evolution, a waiting one, a version taken back and an expiring key."""
    job, soon = failed_job(playbook), timezone.now() + timedelta(days=3)
    key = make_key(owner)[0]
    ApiKey.objects.filter(pk=key.pk).update(expires_at=soon, last_used_at=timezone.now())
    first = playbook.versions.get(number=1)
    Trial.objects.create(
        playbook=playbook,
        kind="version",
        status="ended",
        verdict="worse",
        reason="3 of 20 tasks succeeded, before 15 of 20.",
        ended_at=timezone.now(),
        stable_version=first,
        candidate=first,
        newest_version=first,
        restored_version=first,
        error=0.05,
        outcome_limit=100,
    )
    limited = make_playbook(owner, name="Limited")
    EvolutionJob.objects.create(
        playbook=limited,
        trigger="manual",
        wait_reason="Today's budget is used up.",
        wait_code="budget",
        wait_count=3,
        next_attempt_at=soon,
    )
    return job


def test_all_that_waits_is_listed_and_counted_for_its_owner_only(
    owner: Client,
    stranger: Client,
    admin_page: Client,
    alice: User,
    playbook: Playbook,
    waiting: list[ReviewItem],
) -> None:
    job = everything_else(playbook, alice)
    page = owner.get("/inbox").content.decode()
    for text in (
        *TEXTS,
        "Evolution failed",
        "Evolution is waiting",
        "version 1 was reverted".capitalize(),
        "expires",
    ):
        assert text in page
    assert '<span class="count">7<span' in owner.get("/usage").content.decode()
    for other in (stranger, admin_page):
        page = other.get("/inbox").content.decode()
        assert "Nothing needs a decision" in page
        assert other.post("/inbox", {"approve": str(waiting[0].pk)}).status_code == 302
        assert other.post("/inbox", {"retry": str(job.pk)}).status_code == 302
    assert inbox_count(alice) == 7
    assert len(inbox_items(alice)) == 7
    of_one = [item.kind for item in inbox_items(alice, playbook)]
    assert sorted(of_one) == ["evolution", "review", "review", "review", "trial"]


def test_suggestions_are_decided_one_by_one_and_together(
    owner: Client, alice: User, waiting: list[ReviewItem]
) -> None:
    first, *others = [str(item.pk) for item in waiting]
    owner.post("/inbox", {"decline": first})
    owner.post("/inbox", {"approve": "selected", "item": others})
    states = dict(ReviewItem.objects.values_list("pk", "state"))
    assert [states[item.pk] for item in waiting] == ["declined", "approved", "approved"]
    page = owner.post("/inbox", {"approve": first}, follow=True).content.decode()
    assert "Nothing needs a decision" in page
    assert inbox_count(alice) == 0


def test_what_no_longer_fits_is_said_and_the_rest_goes_through(
    owner: Client, playbook: Playbook
) -> None:
    first, last = [make_review_item(playbook, text) for text in TEXTS[:2]]
    Delta.objects.filter(pk=first.delta_id).update(
        after={"section": "str", "content": "Read the failing test before the code."}
    )
    sent = {"approve": "selected", "item": [str(first.pk), str(last.pk)]}
    page = owner.post("/inbox", sent, follow=True).content.decode()
    assert "Approved 1 suggestion." in page
    assert "It no longer fits the playbook: This advice already exists." in page


def test_a_failed_evolution_is_retried_or_dismissed(
    owner: Client, alice: User, playbook: Playbook
) -> None:
    job = failed_job(playbook)
    owner.post("/inbox", {"dismiss": f"evolution:{job.pk}"})
    alice.refresh_from_db()
    assert inbox_count(alice) == 0
    make_outcome(playbook, alice)
    owner.post("/inbox", {"retry": str(job.pk)})
    job.refresh_from_db()
    assert job.status == "queued"


def test_a_failure_that_a_later_evolution_mended_waits_no_longer(
    alice: User, playbook: Playbook
) -> None:
    failed_job(playbook)
    assert inbox_count(alice) == 1
    EvolutionJob.objects.create(playbook=playbook, trigger="manual", status="completed")
    assert inbox_count(alice) == 0


def test_an_email_comes_once_a_day_and_not_when_it_is_off(
    alice: User, waiting: list[ReviewItem], mailoutbox: list[EmailMessage]
) -> None:
    User.objects.filter(pk=alice.pk).update(email_verified=True)
    for expected in (1, 0):
        cache.delete("inbox-emails")
        assert send_inbox_emails() == expected
    assert "3 items in your inbox need a decision" in mailoutbox[0].subject
    assert TEXTS[0] not in mailoutbox[0].body
    alice.refresh_from_db()
    alice.settings["inbox"] = {}
    alice.save()
    set_inbox_emails(user=alice, wanted=False)
    cache.delete("inbox-emails")
    assert send_inbox_emails() == 0
