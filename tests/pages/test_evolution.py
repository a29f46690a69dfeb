"""Outcomes and evolutions at their pages."""

import re

from django.test import Client

from accounts.models import User
from evolution.models import EvolutionJob, Outcome
from playbooks.models import Playbook
from tests.factories import make_outcome
from tests.harness.sample_account import World

REPORT = {"task_description": "Rename a module", "outcome": "success", "signal": "human"}


def test_an_outcome_is_recorded_by_hand(owner: Client, playbook: Playbook) -> None:
    sent = REPORT | {"bullet_ids": "str-00001, [str-00002]"}
    response = owner.post(f"{playbook.get_absolute_url()}/outcomes/new", sent)
    outcome = Outcome.objects.get()
    assert response["Location"] == outcome.get_absolute_url()
    assert (outcome.cited_bullets, outcome.signal) == (["str-00001", "str-00002"], "human")


def test_an_unknown_bullet_loses_no_report_and_is_named(owner: Client, playbook: Playbook) -> None:
    sent = REPORT | {"bullet_ids": "str-00099"}
    response = owner.post(f"{playbook.get_absolute_url()}/outcomes/new", sent, follow=True)
    assert playbook.outcomes.count() == 1
    assert "str-00099" in response.content.decode()


def test_a_trace_that_is_too_long_is_said_on_its_field(owner: Client, playbook: Playbook) -> None:
    sent = REPORT | {"reasoning_trace": "x" * 10_241}
    response = owner.post(f"{playbook.get_absolute_url()}/outcomes/new", sent)
    assert response.status_code == 413
    assert "at most 10240" in response.content.decode()


def test_outcomes_are_filtered(owner: Client, alice: User, playbook: Playbook) -> None:
    make_outcome(playbook, alice, outcome="failure")
    make_outcome(playbook, alice)
    one = f"{playbook.get_absolute_url()}/outcomes"
    counts = {
        name: len(owner.get(f"{one}?status={name}").context["page"])
        for name in ("", "failure", "partial", "pending", "set_aside", "nonsense")
    }
    assert list(counts.values()) == [2, 1, 0, 2, 0, 2]


def test_asking_with_nothing_pending_starts_nothing(owner: Client, playbook: Playbook) -> None:
    page = owner.post(f"{playbook.get_absolute_url()}/evolutions", follow=True)
    assert "No outcomes are pending" in page.content.decode()
    assert not EvolutionJob.objects.exists()


def test_asking_twice_leads_to_the_same_evolution(
    owner: Client, playbook: Playbook, alice: User
) -> None:
    make_outcome(playbook, alice)
    address = f"{playbook.get_absolute_url()}/evolutions"
    first, second = (owner.post(address)["Location"] for _ in range(2))
    assert first == second == EvolutionJob.objects.get().get_absolute_url()


def test_an_active_job_asks_for_its_live_part(owner: Client, world: World) -> None:
    page = owner.get(world.queued.get_absolute_url()).content.decode()
    assert 'hx-trigger="every 1500ms"' in page


def test_the_live_part_is_a_fragment(owner: Client, world: World) -> None:
    headers = {"HX-Request": "true"}
    part = owner.get(world.queued.get_absolute_url(), headers=headers).content.decode()
    assert part.lstrip().startswith('<div id="live"')
    assert "<html" not in part


def test_a_poll_without_news_is_empty(owner: Client, world: World) -> None:
    page = owner.get(world.queued.get_absolute_url()).content.decode()
    found = re.search(r'hx-get="([^"]+)"', page)
    assert found is not None
    assert owner.get(found.group(1), headers={"HX-Request": "true"}).status_code == 204


def test_a_final_state_asks_no_more(owner: Client, world: World) -> None:
    for job in (world.done, world.failed):
        page = owner.get(job.get_absolute_url()).content.decode()
        assert '<div id="live" class="stack">' in page


def test_the_page_says_what_changed_and_what_was_refused(owner: Client, world: World) -> None:
    page = owner.get(world.done.get_absolute_url()).content.decode()
    assert "Run the linter before the tests." in page
    assert "This advice already exists." in page


def test_a_job_is_cancelled_and_tried_again(owner: Client, world: World) -> None:
    address = world.queued.get_absolute_url()
    owner.post(f"{address}/cancel")
    assert EvolutionJob.objects.get(pk=world.queued.pk).status == "cancelled"
    owner.post(f"{address}/retry")
    assert EvolutionJob.objects.get(pk=world.queued.pk).status == "queued"


def test_cancelling_what_has_ended_is_a_kind_conflict(owner: Client, world: World) -> None:
    response = owner.post(f"{world.done.get_absolute_url()}/cancel")
    assert response.status_code == 409
    assert "already completed" in response.content.decode()
