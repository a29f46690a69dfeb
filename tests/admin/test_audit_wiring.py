"""Every change by a user or an API key is in the audit log, without texts and secrets."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from accounts.keys.api_keys import revoke_api_key, rotate_api_key, update_api_key
from accounts.keys.authentication import principal_for_key
from accounts.models import User
from accounts.services import user_administration
from accounts.services.login import log_in
from core import audit
from core.errors import NotFound
from core.models import AuditEntry
from core.security.scopes import KEY_SCOPES, Principal
from evolution.jobs.lifecycle import (
    cancel_evolution,
    redrive_outcomes,
    retry_evolution,
    trigger_evolution,
)
from evolution.models import Outcome
from playbooks.document.operations import Operation
from playbooks.models import Playbook
from playbooks.services import creation as playbooks
from playbooks.services.editing import edit_playbook
from playbooks.services.rollback import rollback_playbook
from playbooks.services.settings import archive_playbook, restore_playbook, update_playbook
from tests.factories import PASSWORD, add_bullet, make_key, make_outcome, make_playbook

CANARY = "canary-7f3a"
ROOT = Path(__file__).resolve().parents[2]
OWN_RECORD = {
    "report_outcome": "the outcome's row has who and when",
    **dict.fromkeys(
        (
            *("open_session", "close_session", "close_with", "open_chat"),
            *("begin_turn", "rate_chat"),
        ),
        "the session's row has who and when",
    ),
    **dict.fromkeys(("clean_report", "read_playbook", "find_playbook"), "reads only"),
    **dict.fromkeys(("contributing_sessions", "outcome_with_edits"), "reads only"),
    "begin_training": "the run's row has who and when",
    "ensure_job": "its callers record requests; rules trigger by themselves",
    "trigger_if_due": "a rule triggers it, not the user who reported",
    "require_editable": "reads only",
    "next_case": "a claim that a runner gives up by itself",
    "refuse_taken_name": "reads only",
}


def edit(playbook: Playbook, by: Principal) -> Any:
    add = Operation("ADD", section="others", content=f"Mind the {CANARY}.")
    return edit_playbook(playbook=playbook, by=by, operations=[add])


def triggered(playbook: Playbook, by: Principal) -> Any:
    make_outcome(playbook, by.user, task_description=CANARY, notes=CANARY)
    return trigger_evolution(playbook=playbook, by=by)


def cancelled(playbook: Playbook, by: Principal) -> Any:
    job = triggered(playbook, by).job
    return cancel_evolution(job=job, by=by)


def redriven(playbook: Playbook, by: Principal) -> Any:
    outcome = make_outcome(playbook, by.user, task_description=CANARY, notes=CANARY)
    Outcome.objects.filter(pk=outcome.pk).update(set_aside_reason=CANARY)
    return redrive_outcomes(playbook=playbook, by=by, outcome_ids=[outcome.pk])


def rolled_back(playbook: Playbook, by: Principal) -> Any:
    add_bullet(playbook)
    return rollback_playbook(playbook=playbook, by=by, number=1)


VERBS: dict[str, Callable[[Playbook, Principal], Any]] = {
    "create_playbook": lambda p, by: playbooks.create_playbook(by=by, name=CANARY),
    "import_playbook": lambda p, by: make_playbook(by.user, name=CANARY),
    "clone_playbook": lambda p, by: playbooks.clone_playbook(playbook=p, by=by, name=CANARY),
    "update_playbook": lambda p, by: update_playbook(playbook=p, by=by, name=CANARY),
    "archive_playbook": lambda p, by: archive_playbook(playbook=p, by=by),
    "restore_playbook": lambda p, by: restore_playbook(playbook=p, by=by),
    "edit_playbook": edit,
    "rollback_playbook": rolled_back,
    "trigger_evolution": triggered,
    "cancel_evolution": cancelled,
    "retry_evolution": lambda p, by: retry_evolution(job=cancelled(p, by), by=by),
    "redrive_outcomes": redriven,
    "create_api_key": lambda p, by: make_key(by.user, name=CANARY),
    "update_api_key": lambda p, by: update_api_key(key=make_key(by.user)[0], name=CANARY),
    "rotate_api_key": lambda p, by: rotate_api_key(key=make_key(by.user)[0]),
    "revoke_api_key": lambda p, by: revoke_api_key(key=make_key(by.user)[0], reason=CANARY),
    "log_in": lambda p, by: log_in(
        email=by.user.email, password=PASSWORD, address="192.0.2.1", site="https://a.example"
    ),
    "require_second_factor": lambda p, by: user_administration.require_second_factor(
        user=by.user, by=by
    ),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_service_leaves_one_entry_and_no_text(verb: str, playbook: Playbook, alice: User) -> None:
    before = set(AuditEntry.objects.values_list("pk", flat=True))
    VERBS[verb](playbook, Principal.of(alice))
    entries = AuditEntry.objects.exclude(pk__in=before)
    entry = entries.get(action=verb)
    assert (entry.actor_id, entry.owner_id, entry.actor) == (alice.pk, alice.pk, alice.email)
    assert CANARY not in str(list(entries.values()))


def test_an_entry_names_the_key_that_acted(playbook: Playbook, alice: User) -> None:
    key, token = make_key(alice, scopes=KEY_SCOPES)
    archive_playbook(playbook=playbook, by=principal_for_key(token))
    entry = AuditEntry.objects.get(action="archive_playbook")
    assert (entry.key_prefix, entry.subject_id) == (key.prefix, str(playbook.pk))
    assert token not in str(list(AuditEntry.objects.values()))


def test_a_failed_change_leaves_no_entry(playbook: Playbook, alice: User) -> None:
    by = Principal.of(alice)
    with pytest.raises(NotFound):
        rollback_playbook(playbook=playbook, by=by, number=99)
    assert not AuditEntry.objects.filter(action="rollback_playbook").exists()


def test_changes_by_staff_belong_to_the_owner(playbook: Playbook, alice: User, staff: User) -> None:
    archive_playbook(playbook=playbook, by=Principal.of(staff))
    entry = AuditEntry.objects.for_user(alice).get(action="archive_playbook")
    assert entry.actor == staff.email


def test_changes_by_the_platform_have_no_actor(playbook: Playbook) -> None:
    audit.record(action="sweep", by=None, subject=playbook)
    entry = AuditEntry.objects.get(action="sweep")
    assert (entry.actor, entry.actor_id, entry.owner_id) == ("", None, None)


def test_a_service_that_takes_an_actor_records_it() -> None:
    functions = dict(services())
    recording = {"record"}
    while more := {name for name, calls in functions.items() if calls & recording} - recording:
        recording |= more
    takes_actor = {name for name, calls in functions.items() if "by=" in calls}
    forgotten = {name for name in takes_actor - recording if not name.startswith("_")}
    assert forgotten <= OWN_RECORD.keys()


def services() -> Iterator[tuple[str, set[str]]]:
    """Each function of these apps but of interfaces: what it calls, `by=` if it has an actor."""
    for app in ("accounts", "playbooks", "evolution"):
        for file in sorted((ROOT / app).rglob("*.py")):
            if {"admin", "api", "web", "management"} & set(file.parts):
                continue
            for node in ast.parse(file.read_text()).body:
                if isinstance(node, ast.FunctionDef):
                    yield node.name, names_in(node)


def names_in(function: ast.FunctionDef) -> set[str]:
    calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    names = {getattr(call, "id", getattr(call, "attr", "")) for call in calls}
    takes_actor = any(argument.arg == "by" for argument in function.args.kwonlyargs)
    return names | ({"by="} if takes_actor else set())
