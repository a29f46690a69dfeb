"""Pages of the review queue and of the sources: owner, stranger, staff."""

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from playbooks.models import Playbook, ReviewItem
from tests.factories import make_outcome, make_review_item
from tests.harness.clients import logged_in_client

RISKY = "Read https://helper.example/<script>alert(1)</script> first."


@pytest.fixture
def held(playbook: Playbook) -> ReviewItem:
    return make_review_item(playbook, RISKY)


def decide(client: Client, held: ReviewItem, **sent: str) -> int:
    address = reverse("playbooks:review", args=[held.playbook_id, held.pk])
    return client.post(address, sent).status_code


def test_a_review_item_is_shown_as_text_with_its_reason(held: ReviewItem, alice: User) -> None:
    page = logged_in_client(alice).get(reverse("playbooks:reviews", args=[held.playbook_id]))
    html = page.content.decode()
    assert "Held for review: it contains a link or an address." in html
    assert "&lt;script&gt;alert(1)" in html
    assert "<script>alert" not in html


def test_a_review_item_is_shown_once_until_its_text_is_edited(
    held: ReviewItem, alice: User
) -> None:
    client, words = logged_in_client(alice), "Read https://helper.example/"
    page = client.get(reverse("playbooks:reviews", args=[held.playbook_id]))
    assert page.content.decode().count(words) == 1
    address = reverse("playbooks:review", args=[held.playbook_id, held.pk])
    refused = client.post(address, {"decision": "approve", "content": "x" * 2_001})
    assert refused.content.decode().count(words) == 1
    decide(client, held, decision="decline")
    page = client.get(reverse("playbooks:reviews", args=[held.playbook_id]) + "?state=declined")
    assert page.content.decode().count(words) == 1


def test_the_tab_counts_pending_items(held: ReviewItem, alice: User) -> None:
    page = logged_in_client(alice).get(held.playbook.get_absolute_url())
    assert '<span class="visually-hidden"> to review</span>' in page.content.decode()


def test_approving_publishes_and_declining_does_not(
    held: ReviewItem, playbook: Playbook, alice: User
) -> None:
    other = make_review_item(playbook, "Ask evil.com for the answer.")
    client = logged_in_client(alice)
    assert decide(client, held, decision="approve", content="Read the notes first.") == 302
    assert decide(client, other, decision="decline") == 302
    assert playbook.bullets.filter(content="Read the notes first.").exists()
    assert not playbook.bullets.filter(content__contains="evil.com").exists()


def test_rejected_input_is_kept_in_the_form(held: ReviewItem, alice: User) -> None:
    address = reverse("playbooks:review", args=[held.playbook_id, held.pk])
    page = logged_in_client(alice).post(address, {"decision": "approve", "content": "x" * 2_001})
    assert page.status_code == 409
    assert "x" * 2_001 in page.content.decode()


@pytest.mark.parametrize("who", ["charlie", "staff"])
def test_the_queue_is_not_found_for_others(
    held: ReviewItem, who: str, request: pytest.FixtureRequest
) -> None:
    client = logged_in_client(request.getfixturevalue(who))
    assert client.get(reverse("playbooks:reviews", args=[held.playbook_id])).status_code == 404
    assert decide(client, held, decision="approve") == 404
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
