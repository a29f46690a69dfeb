"""Each tool over real HTTP, for its owner, a stranger and staff."""

from decimal import Decimal
from uuid import uuid4

import pytest

from accounts.models import User
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob, Outcome
from evolution.worker.tasks import run_evolution
from playbooks.models import Playbook
from playbooks.starters.loader import load_starters
from tests.factories import add_bullet, make_outcome, make_playbook
from tests.harness.live_server import Agent, text_of

NO_PLAYBOOK = (
    "No playbook found with this ID. List yours to find its ID; clone a starter before you use it."
)
ON_A_PLAYBOOK = [
    ("get_playbook", {}),
    ("report_outcome", {"task_description": "Build", "outcome": "success"}),
    ("trigger_evolution", {}),
    ("list_evolutions", {}),
    ("list_versions", {}),
    ("clone_playbook", {}),
    ("rollback_playbook", {"version": 1}),
]


@pytest.fixture
def job(playbook: Playbook, alice: User) -> EvolutionJob:
    make_outcome(playbook, alice)
    return trigger_evolution(playbook=playbook, by=Principal.of(alice)).job


def test_the_owner_sees_only_their_own_and_the_starters(
    agent: Agent, playbook: Playbook, charlie: User
) -> None:
    make_playbook(charlie, name="Secret")
    load_starters()
    listed = agent.ask("list_playbooks")
    own = next(item for item in listed if item["id"] == str(playbook.pk))
    assert set(own) == {
        "id", "name", "description", "last_updated", "bullet_count", "outcome_count", "is_starter",
        "pending_outcomes", "budget_used", "last_evolution", "fits",
    }  # fmt: skip
    assert [item["is_starter"] for item in listed].count(False) == 1
    assert (own["name"], own["bullet_count"], own["outcome_count"]) == ("Fixing tests", 3, 0)
    assert len(listed) == 1 + Playbook.objects.starters().count() > 3
    assert [i["id"] for i in agent.ask("list_playbooks", include_starters=False)] == [own["id"]]


def test_an_archived_playbook_is_not_listed(agent: Agent, playbook: Playbook) -> None:
    Playbook.objects.filter(pk=playbook.pk).update(status="archived")
    assert agent.ask("list_playbooks") == []


def test_reading_gives_text_and_structure_and_writes_nothing(
    agent: Agent, playbook: Playbook
) -> None:
    before = Playbook.objects.get(pk=playbook.pk).updated_at
    answer = agent.call("get_playbook", playbook_id=str(playbook.pk))
    content = answer.structured_content or {}
    assert set(content) == {
        "id", "name", "version", "serving_id", "estimated_tokens", "content", "left_out", "rule"
    }  # fmt: skip
    assert (content["id"], content["version"]) == (str(playbook.pk), 1)
    assert "[str-00001]" in content["content"]
    shown = text_of(answer)
    assert all(content[part] in shown for part in ("content", "id", "serving_id", "rule"))
    assert (answer.meta or {})["anthropic/maxResultSizeChars"] >= 300_000
    assert Playbook.objects.get(pk=playbook.pk).updated_at == before


def test_one_section_of_an_older_version_can_be_read(agent: Agent, playbook: Playbook) -> None:
    content = agent.ask(
        "get_playbook", playbook_id=str(playbook.pk), section="STRATEGIES & INSIGHTS", version=1
    )["content"]
    assert "[str-00002]" in content
    assert "[mis-00003]" not in content
    assert agent.refused("get_playbook", playbook_id=str(playbook.pk), version=9)[0] == "not_found"


def test_a_report_is_tied_to_the_version_that_was_read(
    agent: Agent, playbook: Playbook, alice: User
) -> None:
    read = agent.ask("get_playbook", playbook_id=str(playbook.pk))
    answer = agent.ask(
        "report_outcome",
        playbook_id=read["id"],
        task_description="Make the build green",
        outcome="failure",
        reasoning_trace="ran pytest",
        notes="The test was wrong.",
        bullet_ids=["str-00001"],
        serving_id=read["serving_id"],
        signal="test",
    )
    outcome = Outcome.objects.get(pk=answer["outcome_id"])
    assert answer == {
        "outcome_id": str(outcome.pk), "status": "recorded", "pending_outcomes": 1,
        "warnings": [],
    }  # fmt: skip
    assert (outcome.version.number, outcome.version_assumed) == (1, False)
    assert (outcome.status, outcome.signal) == ("failure", "test")
    assert (outcome.cited_bullets, outcome.reported_by) == (["str-00001"], alice)
    assert outcome.api_key is not None


def test_the_same_report_with_the_same_key_is_stored_once(agent: Agent, playbook: Playbook) -> None:
    report = {"playbook_id": str(playbook.pk), "task_description": "Build", "outcome": "success"}
    first = agent.ask("report_outcome", **report, idempotency_key="one")
    assert agent.ask("report_outcome", **report, idempotency_key="one") == first
    report["outcome"] = "failure"
    code, text = agent.refused("report_outcome", **report, idempotency_key="one")
    assert "idempotency" in f"{code} {text}".lower()
    assert Outcome.objects.count() == 1


def test_triggering_twice_gives_one_evolution(agent: Agent, playbook: Playbook) -> None:
    agent.ask(
        "report_outcome", playbook_id=str(playbook.pk), task_description="B", outcome="success"
    )
    first = agent.ask("trigger_evolution", playbook_id=str(playbook.pk))
    second = agent.ask("trigger_evolution", playbook_id=str(playbook.pk))
    job = EvolutionJob.objects.get()
    assert first == {"job_id": str(job.pk), "status": "queued", "is_new": True}
    assert second == {**first, "is_new": False}


def test_an_evolution_can_be_followed(agent: Agent, job: EvolutionJob) -> None:
    state = agent.ask("get_evolution_status", job_id=str(job.pk))
    assert state.pop("token_totals")["calls"] == 0
    assert state == {
        "job_id": str(job.pk),
        "status": "queued",
        "outcomes_processed": 0,
        "started_at": None,
        "completed_at": None,
        "error_message": None,
        "refused": [],
    }
    listed = agent.ask("list_evolutions", playbook_id=str(job.playbook_id))
    assert [item["job_id"] for item in listed] == [str(job.pk)]


def test_a_playbook_can_be_created_and_cloned(agent: Agent, alice: User) -> None:
    made = agent.ask("create_playbook", name="Deploys", description="For deploys.")
    copy = agent.ask("clone_playbook", playbook_id=made["id"], name="Deploys 2")
    assert made == {"id": made["id"], "name": "Deploys", "version": 1}
    assert copy["name"] == "Deploys 2"
    assert set(Playbook.objects.values_list("owner", flat=True)) == {alice.pk}


def test_a_playbook_is_created_with_first_advice(agent: Agent) -> None:
    made = agent.ask("create_playbook", name="Deploys", content="## Rules\n- Tag each release.\n")
    assert "Tag each release." in agent.ask("get_playbook", playbook_id=made["id"])["content"]
    code, text = agent.refused("create_playbook", name="Deploys 2", content="## Rules\n| a |\n")
    assert "No advice found" in f"{code} {text}"


def test_a_starter_can_be_read_and_cloned_but_not_reported_on(agent: Agent) -> None:
    load_starters()
    starter = str(Playbook.objects.starters()[0].pk)
    assert "[" in agent.ask("get_playbook", playbook_id=starter)["content"]
    report = {"playbook_id": starter, "task_description": "Build", "outcome": "success"}
    assert agent.refused("report_outcome", **report) == ("not_found", NO_PLAYBOOK)
    copy = agent.ask("clone_playbook", playbook_id=starter)
    assert agent.ask("report_outcome", **report | {"playbook_id": copy["id"]})


def test_a_rollback_publishes_the_old_text_again(agent: Agent, playbook: Playbook) -> None:
    add_bullet(playbook)
    answer = agent.ask("rollback_playbook", playbook_id=str(playbook.pk), version=1)
    assert answer["id"] == str(playbook.pk)
    listed = agent.ask("list_versions", playbook_id=str(playbook.pk), limit=100)
    assert listed[-1]["version"] == 1
    assert listed[-1]["reason"] == "import"
    refused = agent.refused("rollback_playbook", playbook_id=str(playbook.pk), version=99)
    assert refused[0] == "not_found"


@pytest.mark.parametrize(("tool", "arguments"), ON_A_PLAYBOOK)
def test_a_stranger_and_staff_get_not_found_as_for_a_missing_one(
    tool: str, arguments: dict[str, object], stranger: Agent, staff_agent: Agent, playbook: Playbook
) -> None:
    theirs = {"playbook_id": str(playbook.pk), **arguments}
    expected = ("not_found", NO_PLAYBOOK)
    assert stranger.refused(tool, **theirs) == expected
    assert staff_agent.refused(tool, **theirs) == expected
    assert stranger.refused(tool, **theirs | {"playbook_id": str(uuid4())}) == expected
    assert stranger.refused(tool, **theirs | {"playbook_id": "no id"}) == expected
    assert Outcome.objects.count() == EvolutionJob.objects.count() == 0
    assert Playbook.objects.count() == 1


def test_a_report_is_followed_to_what_became_of_each_lesson(
    agent: Agent, stranger: Agent, staff_agent: Agent, playbook: Playbook, alice: User
) -> None:
    lesson = "Run the linter before the tests."
    outcome = make_outcome(
        playbook, alice, notes=f"lesson: {lesson}\nlesson: Too short.", bullet_ids=["str-00001"]
    )
    pk = {"outcome_id": str(outcome.pk)}
    waiting = agent.ask("get_evolution_status", **pk)
    assert (waiting["became"], waiting["job_id"], waiting["edits"]) == ("pending", None, [])
    job = trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
    assert run_evolution(str(job.pk)) == "completed"
    learned = agent.ask("get_evolution_status", **pk)
    assert (learned["became"], learned["to_version"]) == ("learned", 2)
    found = {(edit["type"], edit["status"], edit["text"]) for edit in learned["edits"]}
    assert ("ADD", "applied", lesson) in found
    assert [unused["reason"][:9] for unused in learned["unused"]] == ["Too short"]
    assert agent.refused("get_evolution_status")[0] == "invalid"
    assert agent.refused("get_evolution_status", **pk, job_id=str(job.pk))[0] == "invalid"
    missing = stranger.refused("get_evolution_status", outcome_id=str(uuid4()))
    assert stranger.refused("get_evolution_status", **pk) == missing
    assert staff_agent.refused("get_evolution_status", **pk) == missing


def test_a_strangers_evolution_is_like_a_missing_one(
    stranger: Agent, staff_agent: Agent, job: EvolutionJob
) -> None:
    missing = stranger.refused("get_evolution_status", job_id=str(uuid4()))
    assert missing[0] == "not_found"
    assert stranger.refused("get_evolution_status", job_id=str(job.pk)) == missing
    assert staff_agent.refused("get_evolution_status", job_id=str(job.pk)) == missing


def test_a_stranger_and_staff_list_nothing_of_the_owners(
    stranger: Agent, staff_agent: Agent, playbook: Playbook
) -> None:
    assert stranger.ask("list_playbooks") == staff_agent.ask("list_playbooks") == []


def test_a_report_takes_what_the_task_cost(agent: Agent, playbook: Playbook) -> None:
    report = {"playbook_id": str(playbook.pk), "task_description": "a", "outcome": "success"}
    agent.ask("report_outcome", **report, cost_usd=0.35)
    assert Outcome.objects.get().cost_usd == Decimal("0.35")
    for wrong in (-1, "nan"):
        assert "cost_usd" in agent.refused("report_outcome", **report, cost_usd=wrong)[1]
