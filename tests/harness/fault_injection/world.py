"""The world of a campaign: a database, playbooks, a model behind HTTP, and what children do there.

The parent keeps neither threads nor database connections, because it forks: a child of a warmed
Django costs 50 ms. Whatever needs the database happens in a child, or after the last fork.
"""

import json
import os
import random
import signal
import threading
import traceback
from collections.abc import Callable
from typing import Any, NoReturn
from uuid import UUID, uuid4

from django.conf import settings
from django.core.management import call_command
from django.db import connections

from accounts.models import User
from core.clock import database_now
from core.errors import AceError
from core.security.scopes import Principal
from evolution.jobs.lifecycle import retry_evolution
from evolution.models import EvolutionJob, Outcome
from evolution.outcomes import reporting
from evolution.worker import sweep
from evolution.worker.tasks import run_evolution
from playbooks.models import Playbook
from tests.factories import make_playbook, make_user
from tests.harness.fake_llm.model import FakeLLM
from tests.harness.fault_injection.crash_points import note

LEASE, HEARTBEAT = 1.5, 0.4
CITED = "str-00001"
LESSONS = 30
OWNER = "alice@example.org"


def set_up(base_url: str) -> None:
    """Short leases, a model, no rate limits: settings of this process and its children."""
    changes: dict[str, Any] = {
        "ACE_ENGINE": "openai",
        "OPENAI_API_KEY": "test",
        "OPENAI_BASE_URL": base_url,
        "LLM_CONCURRENCY": 1,
        "LLM_CALLS_PER_KEY": 1000,
        "EVOLUTIONS_PER_OWNER": 1000,
        "JOB_LEASE_SECONDS": LEASE,
        "JOB_HEARTBEAT_SECONDS": HEARTBEAT,
        "JOB_DEADLINE_SECONDS": 60,
        "EVOLUTION_OUTCOME_THRESHOLD": 3,
        "RATE_LIMITS": dict.fromkeys(settings.RATE_LIMITS, "1000000/s"),
    }
    for name, value in changes.items():
        setattr(settings, name, value)


def make_world(count: int) -> list[UUID]:
    """A migrated database with so many playbooks of one owner."""
    call_command("migrate", verbosity=0)
    owner = User.objects.filter(email=OWNER).first() or make_user(OWNER)
    ids = [make_playbook(owner, name=f"Lane {number}").pk for number in range(count)]
    connections.close_all()
    return ids


def fork(body: Callable[[], None]) -> int:
    """The pid of a child that runs `body` and ends."""
    pid = os.fork()
    if pid == 0:
        _child(body)
    return pid


def _child(body: Callable[[], None]) -> NoReturn:
    code = 0
    try:
        random.seed()
        body()
    except BaseException as error:  # noqa: BLE001 - the edge of a process: nothing may escape it
        code = 1
        note(f"error {type(error).__name__} {error} {traceback.format_exc()!r}"[:2000])
    finally:
        os._exit(code)


def serve_model(port_file: str, served_file: str) -> None:
    """The body of the model's process; what it served is written when it is told to end."""
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    with FakeLLM() as llm:
        write(port_file, llm.base_url)
        while not ending.wait(0.2):
            pass
        roles = {call.role for call in llm.requests}
        write(served_file, json.dumps({role: llm.count(role) for role in roles}))


def write(path: str, text: str) -> None:
    with open(f"{path}.new", "w") as file:
        file.write(text)
    os.replace(f"{path}.new", path)


def report(playbook_id: UUID, key: str) -> Outcome:
    """One success that cites a bullet and teaches one of a few lessons."""
    playbook = Playbook.objects.get(pk=playbook_id)
    lesson = random.randrange(LESSONS)
    return reporting.report_outcome(
        playbook=playbook,
        by=owner(),
        task_description=f"Task {key}",
        outcome="success",
        # The same for a repeated key, which has to be the same report.
        notes=f"lesson: Check assumption {UUID(key).int % LESSONS} before change {lesson * 0}.",
        bullet_ids=[CITED],
        idempotency_key=key,
    ).outcome


def owner() -> Principal:
    return Principal.of(User.objects.get(email=OWNER))


def acknowledged(playbook_id: UUID, key: str) -> None:
    """Report, and note the acknowledgement; database faults are tried again, as an agent does."""
    outcome = report(playbook_id, key)
    note(f"ack {outcome.pk}")


def keep_reporting(lanes: list[UUID], pause: float) -> None:
    """The body of the process from which outcomes arrive meanwhile."""
    ending = ended_by_signal()
    while not ending.wait(pause):
        acknowledged(random.choice(lanes), str(uuid4()))


def keep_sweeping(pause: float) -> None:
    """The body of the process that stands for the sweep."""
    ending = ended_by_signal()
    while not ending.wait(pause):
        note_takeovers()


def keep_working(pause: float) -> None:
    """The body of the healthy worker: it runs what is due, and retries what ended badly.

    Jobs are left alone for a moment first, so that the children which are to die get some.
    """
    ending = ended_by_signal()
    while not ending.wait(pause):
        now = database_now()
        for job in EvolutionJob.objects.due(now).order_by("updated_at")[:3]:
            age = (now - job.updated_at).total_seconds()
            if age > 0.4:
                note(f"healthy {run_evolution(str(job.pk))}")
        retry_one()


def note_takeovers() -> None:
    """Sweep, and note how late after the end of its lease each dead worker's job was taken."""
    now = database_now()
    late = {
        pk: (now - at).total_seconds()
        for pk, at in EvolutionJob.objects.lease_expired(now).values_list("pk", "lease_expires_at")
        if at is not None
    }
    sweep.sweep()
    still = set(EvolutionJob.objects.lease_expired(now).values_list("pk", flat=True))
    for pk, seconds in late.items():
        if pk not in still:
            note(f"takeover {seconds:.2f}")


def retry_one() -> None:
    """A failed or cancelled evolution is queued again, if its playbook is free."""
    ended = EvolutionJob.objects.filter(status__in=("failed", "cancelled")).order_by("?").first()
    if ended is None:
        return
    try:
        retry_evolution(job=ended, by=owner())
        note(f"retry {ended.error_code or 'cancelled'}")
    except AceError:
        return


def ended_by_signal() -> threading.Event:
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    return ending
