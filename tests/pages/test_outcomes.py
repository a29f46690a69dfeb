"""Outcomes at their pages: who reported, filters in the URL, and what was made of each."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from core.security.scopes import Principal
from evolution.models import EvolutionJob, Outcome, Reflection
from evolution.outcomes.reporting import report_outcome
from evolution.web.forms import OutcomeFilter
from playbooks.models import Playbook
from tests.factories import make_key, make_outcome, make_playbook
from tests.harness.rest_client import Rest
from tests.harness.sample_account import World


def listed(client: Client, playbook: Playbook, query: str) -> int:
    return len(client.get(f"{playbook.get_absolute_url()}/outcomes?{query}").context["page"])


def report_by(client: str, playbook: Playbook, user: User, **fields: Any) -> Outcome:
    by = Principal.of(user).with_client(client)
    sent: dict[str, Any] = {"task_description": "Make it green", "outcome": "success"} | fields
    return report_outcome(playbook=playbook, by=by, **sent).outcome


def test_the_filters_of_the_url_join(owner: Client, alice: User, playbook: Playbook) -> None:
    report_by("claude-code 2.1", playbook, alice, signal="test")
    report_by("codex 0.9", playbook, alice, outcome="failure", signal="test")
    make_outcome(playbook, alice)
    counts = {
        query: listed(owner, playbook, query)
        for query in (
            "client=codex+0.9",
            "client=-",
            "signal=test",
            "signal=test&status=failure",
            "version=1",
            "version=2",
        )
    }
    assert list(counts.values()) == [1, 1, 2, 1, 3, 0]


@pytest.mark.parametrize("query", ["signal=x", "version=-1", "version=x", "client=x", "status=x"])
def test_a_word_that_is_no_filter_filters_nothing(
    owner: Client, alice: User, playbook: Playbook, query: str
) -> None:
    make_outcome(playbook, alice)
    assert listed(owner, playbook, query) == 1


def test_a_filter_that_fits_nothing_shows_the_way_back(owner: Client, playbook: Playbook) -> None:
    page = owner.get(f"{playbook.get_absolute_url()}/outcomes?status=failure").content.decode()
    assert "No outcomes match this filter" in page


def test_links_to_states_keep_the_other_filters(owner: Client, playbook: Playbook) -> None:
    page = owner.get(f"{playbook.get_absolute_url()}/outcomes?signal=test").content.decode()
    assert 'href="?signal=test&amp;status=failure"' in page


def test_pages_of_a_list_keep_the_filter(owner: Client, alice: User, playbook: Playbook) -> None:
    made = make_outcome(playbook, alice)
    Outcome.objects.bulk_create(
        Outcome(playbook=playbook, version=made.version, status="failure", task_description="x")
        for _ in range(60)
    )
    page = owner.get(f"{playbook.get_absolute_url()}/outcomes?status=failure").content.decode()
    assert 'rel="next" href="?status=failure&amp;before=' in page


def test_a_long_list_says_how_much_was_reported(
    owner: Client, alice: User, playbook: Playbook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evolution.web.outcome_views.PAGE_SIZE", 2)
    for _ in range(3):
        make_outcome(playbook, alice)
    page = owner.get(f"{playbook.get_absolute_url()}/outcomes").content.decode()
    assert "3 outcomes reported, newest first" in page


def programs_of(form: Any) -> dict[str, str]:
    """What the filter offers, with how each reads."""
    return dict(form.fields["client"].choices)


def test_the_filter_offers_each_program_once(alice: User, playbook: Playbook) -> None:
    for client in ("codex 0.9", "", "claude-code 2.1", "codex 0.9"):
        report_by(client, playbook, alice)
    offered = programs_of(OutcomeFilter({}, playbook=playbook))
    assert list(offered) == ["", "claude-code 2.1", "codex 0.9", "-"]
    found = OutcomeFilter({"client": "codex 0.9"}, playbook=playbook).rows()
    assert [row.client for row in found] == ["codex 0.9"] * 2
    nobody = OutcomeFilter({"client": "-"}, playbook=make_playbook(alice))
    assert [*programs_of(nobody).items()][1:] == [("-", "Manual or unnamed")]
    assert not nobody.rows().exists()


def test_an_outcome_of_another_day_is_found_by_its_program(alice: User, playbook: Playbook) -> None:
    report_by("codex 0.9", playbook, alice)
    for days in (40, -1):
        moved = timezone.now() - timedelta(days=days)
        Outcome.objects.filter(playbook=playbook).update(created_at=moved)
        assert OutcomeFilter({"client": "codex 0.9"}, playbook=playbook).rows().exists()


def test_the_program_that_reported_over_rest_is_shown(
    owner: Client, alice: User, playbook: Playbook
) -> None:
    rest = Rest(make_key(alice)[1])
    sent = {"task_description": "x", "outcome": "success"}
    rest.post(f"/playbooks/{playbook.pk}/outcomes", sent, User_Agent="ci-bot/1.2 (x)")
    outcome = Outcome.objects.get()
    assert outcome.client == "ci-bot 1.2"
    assert "ci-bot 1.2" in owner.get(outcome.get_absolute_url()).content.decode()


def test_a_programs_name_is_text_and_short(owner: Client, alice: User, playbook: Playbook) -> None:
    outcome = report_by(f"<b>\x00\n{'x' * 200}", playbook, alice)
    assert len(outcome.client) == 100
    page = owner.get(outcome.get_absolute_url()).content.decode()
    assert "&lt;b&gt;" in page


def test_the_trace_is_folded(owner: Client, world: World) -> None:
    page = owner.get(world.outcome.get_absolute_url()).content.decode()
    assert '<details class="fold"><summary>Show the trace' in page


def test_what_was_made_of_an_outcome_is_on_its_page(owner: Client, world: World) -> None:
    page = owner.get(world.outcome.get_absolute_url()).content.decode()
    assert "Run the linter before the tests." in page.split('id="reflection"')[1]
    assert "Lessons" in page
    assert "str-00001" in page


def test_a_reflection_is_shown_before_its_evolution_is_published(
    owner: Client, alice: User, playbook: Playbook
) -> None:
    outcome = make_outcome(playbook, alice)
    job = EvolutionJob.objects.create(playbook=playbook, trigger="manual", status="running")
    Reflection.objects.create(job=job, outcome=outcome, content={"key_insight": "Ask first."})
    page = owner.get(outcome.get_absolute_url()).content.decode()
    assert "Ask first." in page
    assert "not yet part of a version" in page


def test_an_evolution_says_which_outcomes_gave_no_reflection(
    owner: Client, alice: User, playbook: Playbook
) -> None:
    outcome = make_outcome(playbook, alice, task_description="A task that no model understood")
    job = EvolutionJob.objects.create(
        playbook=playbook,
        trigger="manual",
        status="completed",
        skipped_outcomes={str(outcome.pk): "The model's answer was no JSON."},
    )
    page = owner.get(job.get_absolute_url()).content.decode()
    assert "A task that no model understood" in page
    assert "answer was no JSON" in page


def test_pages_and_rest_count_attempts_alike(owner: Client, alice: User, world: World) -> None:
    EvolutionJob.objects.filter(pk=world.queued.pk).update(attempt=2)
    page = " ".join(owner.get(world.queued.get_absolute_url()).content.decode().split())
    assert "<dt>Failed attempts</dt><dd>2 <small>of 5</small></dd>" in page
    assert Rest.of(alice).get(f"/evolutions/{world.queued.pk}").json()["attempt"] == 2


def test_an_outcome_recorded_by_hand_ends_at_evolve_now(owner: Client, playbook: Playbook) -> None:
    sent = {"task_description": "Make it green", "outcome": "success", "signal": "human"}
    answer = owner.post(f"{playbook.get_absolute_url()}/outcomes/new", sent, follow=True)
    assert "Outcome saved. 1 pending for the next evolution." in answer.content.decode()
    assert '<button class="primary">Evolve now</button>' in answer.content.decode()
