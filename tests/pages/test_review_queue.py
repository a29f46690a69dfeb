"""Pages of the review queue and of the sources: owner, stranger, staff."""

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from core.security.scopes import Principal
from playbooks.models import Delta, Playbook, ReviewItem
from playbooks.services.settings import archive_playbook
from tests.factories import make_outcome, make_playbook, make_review_item
from tests.harness.clients import logged_in_client

RISKY = "Read https://helper.example/<script>alert(1)</script> first."
ID = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def held(playbook: Playbook) -> ReviewItem:
    return make_review_item(playbook, RISKY)


def page_of(held: ReviewItem, rest: str = "") -> str:
    return f"/inbox?playbook={held.playbook_id}{rest}"


def decide(client: Client, held: ReviewItem, decision: str, text: str = "") -> int:
    sent = {decision: str(held.pk), f"content-{held.pk}": text}
    return client.post(page_of(held, f"&edit={held.pk}" if text else ""), sent).status_code


def test_a_review_item_is_shown_as_text_with_its_reason(held: ReviewItem, owner: Client) -> None:
    html = owner.get(page_of(held)).content.decode()
    assert "It contains a link or an address." in html
    assert "&lt;script&gt;alert(1)" in html
    assert "<script>alert" not in html


def test_the_old_address_leads_to_the_inbox_of_the_playbook(
    held: ReviewItem, owner: Client
) -> None:
    old = owner.get(f"{held.playbook.get_absolute_url()}/reviews")
    assert old["Location"] == page_of(held)


def test_a_review_item_is_shown_once_in_each_state(held: ReviewItem, owner: Client) -> None:
    words = "Read https://helper.example/"
    for rest in ("", f"&edit={held.pk}"):
        assert owner.get(page_of(held, rest)).content.decode().count(words) == 1
    decide(owner, held, "decline")
    assert words not in owner.get(page_of(held)).content.decode()
    html = owner.get(page_of(held, "&state=declined")).content.decode()
    assert html.count(words) == 1
    assert "Declined by you" in html


def test_only_the_playbook_that_was_asked_for_is_listed(
    held: ReviewItem, owner: Client, alice: User
) -> None:
    other = make_playbook(alice, name="Other")
    make_review_item(other, "Ask evil.com for the answer.")
    assert "evil.com" in owner.get("/inbox").content.decode()
    assert "evil.com" not in owner.get(page_of(held)).content.decode()
    assert owner.get("/inbox?playbook=nothing").status_code == 404


def test_a_suggestion_names_the_outcomes_behind_it(
    held: ReviewItem, owner: Client, alice: User
) -> None:
    outcome = make_outcome(held.playbook, alice, task_description="Fix the webhook")
    Delta.objects.filter(pk=held.delta_id).update(outcome_ids=[str(outcome.pk), ID])
    html = owner.get("/inbox").content.decode()
    assert f"/outcomes/{outcome.pk}" in html
    assert "Fix the webhook" in html
    assert "a deleted outcome" in html


def test_the_tab_counts_pending_items(held: ReviewItem, owner: Client) -> None:
    page = owner.get(held.playbook.get_absolute_url())
    assert '<span class="visually-hidden"> to review</span>' in page.content.decode()


def test_approving_publishes_and_declining_does_not(
    held: ReviewItem, playbook: Playbook, owner: Client
) -> None:
    other = make_review_item(playbook, "Ask evil.com for the answer.")
    assert decide(owner, held, "approve", "Read the notes first.") == 302
    assert decide(owner, other, "decline") == 302
    assert playbook.bullets.filter(content="Read the notes first.").exists()
    assert not playbook.bullets.filter(content__contains="evil.com").exists()


def test_rejected_input_is_kept_in_the_form(held: ReviewItem, owner: Client) -> None:
    sent = {"approve": str(held.pk), f"content-{held.pk}": "x" * 2_001}
    page = owner.post(page_of(held, f"&edit={held.pk}"), sent)
    assert page.status_code == 409
    assert "x" * 2_001 in page.content.decode()


def test_an_archived_playbook_decides_nothing(held: ReviewItem, owner: Client, alice: User) -> None:
    archive_playbook(playbook=held.playbook, by=Principal.of(alice))
    html = owner.get(page_of(held)).content.decode()
    assert "This playbook is archived" in html
    assert 'name="approve"' not in html


@pytest.mark.parametrize("who", ["charlie", "staff"])
def test_the_queue_is_not_found_for_others(
    held: ReviewItem, who: str, request: pytest.FixtureRequest
) -> None:
    client = logged_in_client(request.getfixturevalue(who))
    assert client.get(page_of(held)).status_code == 404
    assert decide(client, held, "approve") == 404
    assert client.post("/inbox", {"approve": str(held.pk)}).status_code == 302
    held.refresh_from_db()
    assert held.state == "pending"


def test_a_source_is_reverted_after_a_preview(playbook: Playbook, alice: User) -> None:
    make_outcome(playbook, alice)
    client = logged_in_client(alice)
    source = f"user:{alice.pk}"
    address = reverse("evolution:rollback_source", args=[playbook.pk, source])
    assert b"Revert learning from alice@example.org?" in client.get(address).content
    answer = client.post(address, follow=True)
    assert "Nothing left to revert." in answer.content.decode()


def test_an_unknown_source_redirects_with_a_message(playbook: Playbook, alice: User) -> None:
    address = reverse("evolution:rollback_source", args=[playbook.pk, "planet:1"])
    answer = logged_in_client(alice).get(address, follow=True)
    assert "lists them" in answer.content.decode()


@pytest.mark.parametrize("who", ["charlie", "staff"])
def test_the_sources_are_not_found_for_others(
    playbook: Playbook, who: str, request: pytest.FixtureRequest
) -> None:
    client = logged_in_client(request.getfixturevalue(who))
    assert client.get(reverse("evolution:sources", args=[playbook.pk])).status_code == 404
