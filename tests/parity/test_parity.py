"""Page, REST and MCP call one function: the same rows, the same 404, the same refusals."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import LazySettings

from accounts.models import User
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob, Outcome
from playbooks.models import Delta, Playbook, Version
from playbooks.services.settings import archive_playbook
from tests.factories import add_bullet, make_outcome, make_playbook
from tests.harness.interfaces import Answer, Interface, open_interfaces
from tests.harness.live_server import live_url

__all__ = ["live_url"]

INTERFACES = ["page", "rest", "mcp"]
REPORT: dict[str, Any] = {
    "task_description": "Make the build green",
    "outcome": "failure",
    "notes": "lesson: Read the first error, not the last.",
    "reasoning_trace": "ran the tests",
    "bullet_ids": ["str-00001"],
    "signal": "test",
}


def rows_of(playbook: Playbook) -> list[Any]:
    """What the verbs write, without ids and times."""
    outcomes = Outcome.objects.filter(playbook=playbook).values_list(
        *("task_description", "status", "notes", "reasoning_trace", "cited_bullets", "signal"),
        *("version__number", "version_assumed", "reported_by__email"),
    )
    jobs = EvolutionJob.objects.filter(playbook=playbook).values_list(
        "status", "trigger", "triggered_by__email"
    )
    versions = Version.objects.filter(playbook=playbook).values_list("number", "reason", "text")
    deltas = Delta.objects.filter(playbook=playbook).values_list("type", "status", "after")
    return [list(rows) for rows in (outcomes, jobs, versions, deltas)]


def report_then_trigger(interface: Interface, playbook: Playbook) -> list[Answer]:
    return [interface.report_outcome(playbook, **REPORT), interface.trigger_evolution(playbook)]


def roll_back(interface: Interface, playbook: Playbook) -> list[Answer]:
    add_bullet(playbook)
    done = interface.rollback_playbook(playbook, 1)
    again = interface.rollback_playbook(playbook, 1)
    assert again.kind == "conflict"
    assert "Nothing to roll back" in again.text
    return [done]


@pytest.mark.parametrize("act", [report_then_trigger, roll_back])
def test_each_interface_writes_the_same_rows(
    live_url: str, alice: User, act: Callable[[Interface, Playbook], list[Answer]]
) -> None:
    written = []
    for interface in open_interfaces(live_url, alice).values():
        playbook = make_playbook(alice)
        assert {answer.kind for answer in act(interface, playbook)} == {"ok"}
        written.append(rows_of(playbook))
    assert written[0] == written[1] == written[2]


def test_each_interface_creates_and_clones_alike(live_url: str, alice: User) -> None:
    made = []
    for name, interface in open_interfaces(live_url, alice).items():
        source = make_playbook(alice, name=f"Source at {name}")
        assert interface.create_playbook(f"Made at {name}").kind == "ok"
        assert interface.clone_playbook(source).kind == "ok"
        created = Playbook.objects.get(name=f"Made at {name}")
        cloned = Playbook.objects.get(cloned_from=source)
        made.append([(p.owner_id, p.source, p.status, rows_of(p)[2]) for p in (created, cloned)])
    assert made[0] == made[1] == made[2]


def everything(interface: Interface, playbook: Playbook, job: EvolutionJob) -> dict[str, Answer]:
    return {
        "get_playbook": interface.get_playbook(playbook),
        "clone_playbook": interface.clone_playbook(playbook),
        "report_outcome": interface.report_outcome(playbook, **REPORT),
        "trigger_evolution": interface.trigger_evolution(playbook),
        "list_evolutions": interface.list_evolutions(playbook),
        "get_evolution_status": interface.get_evolution_status(job.pk),
        "list_versions": interface.list_versions(playbook),
        "rollback_playbook": interface.rollback_playbook(playbook, 1),
    }


@pytest.fixture
def job(live_url: str, playbook: Playbook, alice: User) -> EvolutionJob:
    add_bullet(playbook)
    make_outcome(playbook, alice)
    return trigger_evolution(playbook=playbook, by=Principal.of(alice)).job


@pytest.mark.parametrize("interface", INTERFACES)
def test_the_owner_may_use_every_verb(
    live_url: str, alice: User, job: EvolutionJob, interface: str
) -> None:
    answers = everything(open_interfaces(live_url, alice)[interface], job.playbook, job)
    assert {name: answer.kind for name, answer in answers.items()} == dict.fromkeys(answers, "ok")


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("who", ["charlie", "staff"])
def test_a_stranger_and_staff_find_nothing_with_any_verb(
    live_url: str, job: EvolutionJob, interface: str, who: str, request: pytest.FixtureRequest
) -> None:
    before = rows_of(job.playbook)
    user: User = request.getfixturevalue(who)
    answers = everything(open_interfaces(live_url, user)[interface], job.playbook, job)
    assert {answer.kind for answer in answers.values()} == {"not_found"}
    assert all("with this ID" in answer.text for answer in answers.values())
    assert rows_of(job.playbook) == before


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_list_contains_own_rows_only(
    live_url: str, playbook: Playbook, charlie: User, alice: User, interface: str
) -> None:
    assert (
        str(playbook.pk) not in open_interfaces(live_url, charlie)[interface].list_playbooks().text
    )
    assert str(playbook.pk) in open_interfaces(live_url, alice)[interface].list_playbooks().text


@pytest.mark.parametrize("interface", INTERFACES)
def test_over_both_limits_of_reports_each_interface_refuses_and_stores_nothing(
    live_url: str, playbook: Playbook, alice: User, settings: LazySettings, interface: str
) -> None:
    limits = {"report_outcome": "1/h", "report_outcome_over": "1/h"}
    settings.RATE_LIMITS = settings.RATE_LIMITS | limits
    one = open_interfaces(live_url, alice)[interface]
    answers = [one.report_outcome(playbook, **REPORT) for _ in range(3)]
    assert [answer.kind for answer in answers] == ["ok", "ok", "rate_limited"]
    assert Outcome.objects.count() == 2


@pytest.mark.parametrize("interface", INTERFACES)
def test_with_nothing_pending_each_interface_starts_nothing(
    live_url: str, playbook: Playbook, alice: User, interface: str
) -> None:
    answer = open_interfaces(live_url, alice)[interface].trigger_evolution(playbook)
    assert (answer.kind, EvolutionJob.objects.count()) == ("ok", 0)
    assert interface == "page" or "nothing_pending" in answer.text


@pytest.mark.parametrize("interface", INTERFACES)
def test_over_the_limit_of_triggers_each_interface_refuses(
    live_url: str, playbook: Playbook, alice: User, settings: LazySettings, interface: str
) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"trigger_evolution": "1/h"}
    make_outcome(playbook, alice)
    one = open_interfaces(live_url, alice)[interface]
    first = one.trigger_evolution(playbook)
    EvolutionJob.objects.update(status="completed")
    assert [first.kind, one.trigger_evolution(playbook).kind] == ["ok", "rate_limited"]


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"reasoning_trace": "x" * 10_241}, "too_large"),
        ({"notes": "x" * 2_049}, "too_large"),
        ({"task_description": "x" * 4_097}, "too_large"),
        ({"outcome": "great"}, "invalid"),
        ({"notes": "a\x00b"}, "invalid"),
    ],
)
def test_each_interface_refuses_a_bad_report_and_stores_nothing(
    live_url: str,
    playbook: Playbook,
    alice: User,
    interface: str,
    fields: dict[str, Any],
    kind: str,
) -> None:
    answer = open_interfaces(live_url, alice)[interface].report_outcome(
        playbook, **(REPORT | fields)
    )
    assert answer.kind == kind
    assert not Outcome.objects.exists()


@pytest.mark.parametrize("interface", INTERFACES)
def test_each_interface_stores_a_report_with_a_slip_and_names_it(
    live_url: str, playbook: Playbook, alice: User, interface: str
) -> None:
    fields = {"bullet_ids": ["str-00001", "str-99999"], "serving_id": "mangled"}
    one = open_interfaces(live_url, alice)[interface]
    assert one.report_outcome(playbook, **(REPORT | fields)).kind == "ok"
    assert Outcome.objects.get().cited_bullets == ["str-00001"]


@pytest.mark.parametrize("interface", INTERFACES)
def test_an_archived_playbook_refuses_reports_at_each_interface(
    live_url: str, playbook: Playbook, alice: User, interface: str
) -> None:
    archive_playbook(playbook=playbook, by=Principal.of(alice))
    answer = open_interfaces(live_url, alice)[interface].report_outcome(playbook, **REPORT)
    assert answer.kind == "conflict"
    assert "Restore it first" in answer.text
