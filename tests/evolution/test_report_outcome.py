"""What a report stores, refuses and starts."""

import pytest
from django.conf import LazySettings

from accounts.keys.key_format import mint
from accounts.models import User
from core.errors import Conflict, Invalid, RateLimited, TooLarge
from core.security.scopes import Principal
from evolution.engine.inputs import OutcomeInput
from evolution.engine.providers.rules_engine import blamed_bullets
from evolution.models import EvolutionJob, Outcome
from evolution.outcomes.reporting import RecordedOutcome, report_outcome
from playbooks.models import Playbook
from playbooks.services.reading import read_playbook
from playbooks.services.settings import archive_playbook
from tests.factories import add_bullet, make_playbook

pytestmark = pytest.mark.postgres


def report(playbook: Playbook, by: User, **fields: object) -> RecordedOutcome:
    wanted = {"task_description": "Fix the build", "outcome": "success"} | fields
    return report_outcome(playbook=playbook, by=Principal.of(by), **wanted)  # type: ignore[arg-type]  # a bag of keyword arguments


def test_a_report_is_stored_and_waits(playbook: Playbook, alice: User) -> None:
    result = report(playbook, alice, notes="lesson: read the log first")
    assert (result.pending_outcomes, result.job, result.is_new) == (1, None, True)
    assert result.outcome.version == playbook.current_version


def test_the_fifth_report_triggers_one_evolution(playbook: Playbook, alice: User) -> None:
    jobs = [report(playbook, alice).job for _ in range(6)]
    assert jobs[:4] == [None] * 4
    assert jobs[4] is not None
    assert jobs[4].trigger == "threshold"
    assert EvolutionJob.objects.count() == 1


def test_the_playbooks_own_threshold_wins(playbook: Playbook, alice: User) -> None:
    playbook.outcome_threshold = 1
    playbook.save()
    assert report(playbook, alice).job is not None


def test_a_serving_ties_the_report_to_the_version_that_was_read(
    playbook: Playbook, alice: User
) -> None:
    reading = read_playbook(playbook=playbook, by=Principal.of(alice))
    add_bullet(playbook)
    outcome = report(playbook, alice, serving_id=reading.serving_id).outcome
    assert (outcome.version.number, outcome.version_assumed) == (1, False)


def test_without_a_serving_the_current_version_is_marked_as_assumed(
    playbook: Playbook, alice: User
) -> None:
    assert report(playbook, alice).outcome.version_assumed is True


def test_cited_bullets_are_found_in_quotes_and_brackets(playbook: Playbook, alice: User) -> None:
    outcome = report(
        playbook, alice, bullet_ids=["'str-00001'", "[mis-00003]", "str-00001"]
    ).outcome
    assert outcome.cited_bullets == ["str-00001", "mis-00003"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("outcome", "great"),
        ("signal", "rumour"),
        ("task_description", "   "),
        ("task_description", "a\x00b"),
        ("notes", "\ud800"),
    ],
)
def test_bad_input_names_the_field_and_stores_nothing(
    playbook: Playbook, alice: User, field: str, value: object
) -> None:
    with pytest.raises(Invalid) as refusal:
        report(playbook, alice, **{field: value})
    assert list(refusal.value.fields) == [field]
    assert not Outcome.objects.exists()


@pytest.mark.parametrize(
    ("field", "limit"), [("reasoning_trace", 10_240), ("notes", 2_048), ("task_description", 4_096)]
)
def test_a_text_may_fill_its_limit_in_bytes_and_no_more(
    playbook: Playbook, alice: User, field: str, limit: int
) -> None:
    report(playbook, alice, **{field: "é" * (limit // 2)})
    with pytest.raises(TooLarge):
        report(playbook, alice, **{field: "é" * (limit // 2) + "x"})


@pytest.mark.parametrize(
    ("field", "value", "warning"),
    [
        ("bullet_ids", ["str-00001", "str-99999"], "bullet_ids: this playbook has no str-99999"),
        ("bullet_ids", ["str-00001", "no id"], "bullet_ids: 1 without an id"),
        ("bullet_ids", ["str-00001"] * 101, "bullet_ids: 1 after the first 100; left out"),
        ("harmful_bullet_ids", ["mis-99999"], "harmful_bullet_ids: this playbook has no mis-99999"),
        ("serving_id", "forged", "serving_id: not from one of your reads"),
        ("serving_id", "\ud800é" * 90, "serving_id: not from one of your reads"),
    ],
)
def test_one_slip_loses_no_report(
    playbook: Playbook, alice: User, field: str, value: object, warning: str
) -> None:
    recorded = report(playbook, alice, **{field: value})
    assert len(recorded.warnings) == 1
    assert recorded.warnings[0].startswith(warning)
    assert recorded.outcome.cited_bullets == (["str-00001"] if field == "bullet_ids" else [])


def test_a_harmful_bullet_is_cited_and_named_in_the_notes(playbook: Playbook, alice: User) -> None:
    outcome = report(
        playbook, alice, outcome="failure", notes="It broke.", harmful_bullet_ids=["mis-00003"]
    ).outcome
    assert (outcome.cited_bullets, outcome.notes) == (
        ["mis-00003"],
        "It broke.\nharmful: mis-00003",
    )
    given = OutcomeInput(id="1", task="T", status="failure", notes=outcome.notes, trace="")
    assert blamed_bullets(given) == {"mis-00003"}


def test_a_serving_id_is_short_enough_to_retype(playbook: Playbook, alice: User) -> None:
    reading = read_playbook(playbook=playbook, by=Principal.of(alice))
    assert len(reading.serving_id) <= 40
    copied = f"`{reading.serving_id}` "
    assert not report(playbook, alice, serving_id=copied).outcome.version_assumed


def test_the_same_idempotency_key_and_report_is_stored_once(
    playbook: Playbook, alice: User
) -> None:
    first = report(playbook, alice, idempotency_key="task-1")
    again = report(playbook, alice, idempotency_key="task-1")
    assert (again.outcome, again.is_new) == (first.outcome, False)
    assert Outcome.objects.count() == 1


def test_the_same_idempotency_key_with_another_report_is_a_conflict(
    playbook: Playbook, alice: User
) -> None:
    report(playbook, alice, idempotency_key="task-1")
    with pytest.raises(Conflict, match="idempotency key"):
        report(playbook, alice, idempotency_key="task-1", notes="other")


def test_over_the_limit_a_report_waits_and_starts_no_evolution(
    playbook: Playbook, alice: User, settings: LazySettings
) -> None:
    """600 of 706 reports of 50 agents were refused and lost."""
    settings.RATE_LIMITS = settings.RATE_LIMITS | {
        "report_outcome": "2/h",
        "report_outcome_over": "2/h",
    }
    settings.EVOLUTION_OUTCOME_THRESHOLD = 3
    assert [report(playbook, alice).warnings for _ in range(2)] == [[], []]
    third = report(playbook, alice)
    assert (third.job, third.pending_outcomes) == (None, 3)
    assert "stored" in third.warnings[0]
    report(playbook, alice)
    with pytest.raises(RateLimited):
        report(playbook, alice)
    assert Outcome.objects.count() == 4


def test_a_repeat_of_a_stored_report_costs_no_rate(
    playbook: Playbook, alice: User, settings: LazySettings
) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"report_outcome": "1/h"}
    for _ in range(3):
        report(playbook, alice, idempotency_key="task-1")


def test_an_archived_playbook_takes_no_reports(playbook: Playbook, alice: User) -> None:
    archive_playbook(playbook=playbook, by=Principal.of(alice))
    with pytest.raises(Conflict, match="archived"):
        report(playbook, alice)


def test_our_own_api_keys_are_removed_from_what_agents_send(
    playbook: Playbook, alice: User
) -> None:
    token = mint().token
    outcome = report(playbook, alice, reasoning_trace=f"curl -H 'Bearer {token}'").outcome
    assert token not in outcome.reasoning_trace
    assert "[API key removed]" in outcome.reasoning_trace


def test_a_serving_of_another_playbook_counts_as_none(playbook: Playbook, alice: User) -> None:
    other = make_playbook(alice, name="Other")
    reading = read_playbook(playbook=other, by=Principal.of(alice))
    recorded = report(playbook, alice, serving_id=reading.serving_id)
    assert recorded.outcome.version_assumed
    assert recorded.warnings[0].startswith("serving_id: ")
