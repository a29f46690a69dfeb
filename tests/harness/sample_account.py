"""One account with everything that a page can show, hostile and very long texts included."""

import uuid
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone

from accounts.keys.api_keys import revoke_api_key
from accounts.models import ApiKey, ConnectedApp, User
from billing.limits.spending import set_budget
from billing.models import UsageRecord
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import AgentSession, EvolutionJob, Outcome, WorkerHeartbeat
from evolution.sessions.recording import add_messages, close_session
from evolution.sessions.validation import NewMessage
from evolution.worker.claims import claim_job
from evolution.worker.engine_run import run_engine
from evolution.worker.publication import publish
from playbooks.document.operations import Operation
from playbooks.models import Playbook
from playbooks.services import creation as playbooks
from playbooks.services.editing import edit_playbook
from playbooks.services.settings import archive_playbook
from playbooks.starters.loader import load_starters
from tests.factories import (
    make_app,
    make_key,
    make_outcome,
    make_playbook,
    make_review_item,
    make_session,
)

HOSTILE = '<script>alert("trace")</script><img src=x onerror=alert(1)>'
LONG = "unbroken" * 40


@dataclass(frozen=True)
class World:
    """Rows of `owner`, one for each state that a page knows."""

    owner: User
    playbook: Playbook
    empty: Playbook
    archived: Playbook
    starter: Playbook
    key: ApiKey
    app: ConnectedApp
    outcome: Outcome
    done: EvolutionJob
    queued: EvolutionJob
    failed: EvolutionJob
    session: AgentSession
    chat: AgentSession
    tried: AgentSession


def build_world(owner: User) -> World:
    """Made by the services; only what they cannot make is written as rows."""
    by = Principal.of(owner)
    load_starters()
    playbook = make_playbook(owner)
    busy, broken = make_playbook(owner, name=f"Busy {LONG}"[:120]), make_playbook(owner, name="Bad")
    outcome, done = make_evolution(playbook, owner)
    edit(playbook, by)
    make_review_item(playbook, f"Read https://helper.example/{LONG} first.")
    archived = make_playbook(owner, name="Put away")
    archive_playbook(playbook=archived, by=by)
    make_usage(playbook, owner)
    make_budgets(playbook, by)
    make_revoked_key(owner)
    WorkerHeartbeat.objects.create(worker="test", last_seen_at=timezone.now())
    make_outcome(playbook, owner, task_description=LONG, outcome="partial")
    return World(
        owner=owner,
        playbook=Playbook.objects.get(pk=playbook.pk),
        empty=playbooks.create_playbook(by=by, name="Nothing in it yet"),
        archived=archived,
        starter=Playbook.objects.starters().order_by("name")[0],
        key=make_key(owner, name="laptop", playbook_ids=[playbook.pk])[0],
        app=make_app(owner, name=f"<script>alert(1)</script> {LONG}"),
        outcome=outcome,
        done=leave_out(EvolutionJob.objects.get(pk=done.pk), outcome),
        queued=make_waiting_job(busy, owner),
        failed=make_failed_job(broken, owner),
        session=make_conversation(playbook, owner, outcome),
        chat=make_session(owner, None, ("user", f"{HOSTILE} {LONG}")),
        tried=make_try(playbook, owner),
    )


def make_evolution(playbook: Playbook, owner: User) -> tuple[Outcome, EvolutionJob]:
    """Three outcomes and the evolution that the rules engine made of them."""
    outcome = make_outcome(
        playbook,
        owner,
        task_description=f"Make the build green {HOSTILE}",
        reasoning_trace=f"$ make test\n{HOSTILE}\n{LONG}\n3 failed, 2 passed",
        notes="lesson: Run the linter before the tests.",
        bullet_ids=["str-00001"],
    )
    make_outcome(playbook, owner, outcome="failure", notes="avoid: Guessing what a flag does.")
    make_outcome(playbook, owner, notes="lesson: Read the failing test before the code.")
    done = trigger_evolution(playbook=playbook, by=Principal.of(owner)).job
    # What the worker's task does, without its care for connections (a test may hold one open).
    claim = claim_job(str(done.pk))
    assert claim is not None
    publish(claim, run_engine(claim))
    return Outcome.objects.get(pk=outcome.pk), done


def make_try(playbook: Playbook, owner: User) -> AgentSession:
    """A chat in the playground, beside the same without the playbook."""
    asked, said = f"Why? {HOSTILE} {LONG}", f"See [str-00001] and [str-99999]. {HOSTILE} {LONG}"
    both: dict[str, Any] = {"source": "playground", "model": "own-model", "pair_id": uuid.uuid4()}
    make_session(owner, playbook, ("user", asked), ace_enabled=False, **both)
    return make_session(owner, playbook, ("user", asked), ("assistant", said), **both)


def make_conversation(playbook: Playbook, owner: User, outcome: Outcome) -> AgentSession:
    """What was said before the outcome, by every role; one side of a pair."""
    pair = uuid.uuid4()
    make_session(owner, playbook, ("user", "The same"), ace_enabled=False, pair_id=pair)
    session = make_session(owner, playbook, version=1, pair_id=pair, model="gpt-4o-mini")
    call = {"id": "call_1", "name": "run_tests", "arguments": '{"only": "failed"}'}
    said = [
        NewMessage("system", f"Use the playbook.\n{LONG}" * 9),
        NewMessage("user", f"Make the build green {HOSTILE}"),
        NewMessage("assistant", "", tool_calls=[call]),
        NewMessage("tool", f"3 failed {HOSTILE}\n{LONG}", tool_name="run_tests"),
        NewMessage("assistant", f"By [str-00001] it is green. {LONG}", tokens=1234),
    ]
    add_messages(session=session, messages=said)
    close_session(session=session, by=Principal.of(owner))
    # As if it had been closed with that report.
    AgentSession.objects.filter(pk=session.pk).update(outcome=outcome)
    return session


def edit(playbook: Playbook, by: Principal) -> None:
    """A version of a person: one text changed, one bullet retired, one pinned."""
    text = "Prefer the smallest change that makes the failing test pass, then tidy up."
    operations = [
        Operation("UPDATE", id="str-00002", content=text),
        Operation("REMOVE", id="mis-00003", reason="We silence them on purpose."),
        Operation("PIN", id="str-00001", tag="on"),
    ]
    made = edit_playbook(playbook=playbook, by=by, operations=operations)
    assert [delta.status for delta in made.deltas] == ["applied"] * 3


def make_waiting_job(playbook: Playbook, owner: User) -> EvolutionJob:
    """Queued, after a fault that passes by itself."""
    make_outcome(playbook, owner)
    job = trigger_evolution(playbook=playbook, by=Principal.of(owner)).job
    now = timezone.now()
    job.wait(until=now + timedelta(hours=1), reason="The provider is down.", costs_attempt=False)
    job.save()
    return job


def make_failed_job(playbook: Playbook, owner: User) -> EvolutionJob:
    make_outcome(playbook, owner)
    job = trigger_evolution(playbook=playbook, by=Principal.of(owner)).job
    message = "The provider rejected the API key. Set OPENAI_API_KEY to a valid one, then retry."
    job.fail(now=timezone.now(), code="credential", message=message)
    job.save()
    job.release_outcomes()
    return job


def leave_out(job: EvolutionJob, outcome: Outcome) -> EvolutionJob:
    """As if the model had given no answer on this outcome."""
    job.skipped_outcomes = {str(outcome.pk): "The model gave no answer that fits, twice."}
    job.save(update_fields=["skipped_outcomes"])
    return job


def make_usage(playbook: Playbook, owner: User) -> None:
    """Calls of some days, for a key and for none; one with a model that has no price."""
    key, _ = make_key(owner, name="ci")
    calls = (("gpt-4o-mini", Decimal("0.0123")), ("own-model", None), ("gpt-4o", Decimal("0.5")))
    for place, (model, cost) in enumerate(calls * 3):
        tokens = 12_000 * (place + 1)
        UsageRecord.objects.create(
            user=owner,
            playbook_id=playbook.pk,
            api_key_id=key.pk if place % 2 else None,
            job_id=uuid.uuid4(),
            step="curate",
            attempt=1,
            operation="curate",
            status="answered",
            model=model,
            prompt_tokens=tokens,
            completion_tokens=800,
            total_tokens=tokens + 800,
            cost_usd=cost,
            created_at=timezone.now() - timedelta(days=3 * place),
        )


def make_budgets(playbook: Playbook, by: Principal) -> None:
    """One that is far off, one that is near and one that is reached."""
    set_budget(by=by, usd_per_day=Decimal("0.02"), usd_per_month=Decimal(500), warn_percent=50)
    set_budget(by=by, playbook_id=playbook.pk, usd_per_day=Decimal("0.01"), stops=False)


def make_revoked_key(owner: User) -> None:
    key, _ = make_key(owner, name=f"old {LONG}"[:100], scopes=["read"])
    revoke_api_key(key=key, reason="lost")
