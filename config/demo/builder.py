"""Creates the demo account day by day with the services that users call, and deletes it."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import DateTimeField, F

from accounts.keys.api_keys import create_api_key
from accounts.models import ApiKey, User
from accounts.services.personal_data import delete_account, personal_rows
from billing.models import DailySpend, UsageRecord
from billing.pricing.calculator import price_call
from config.demo.scenarios import CLIENTS, KEYS, SCENARIOS, Scenario
from core.clock import database_now
from core.errors import Conflict
from core.models import AuditEntry
from core.security.scopes import Principal
from evolution.models import EvolutionJob, Outcome, Reflection
from evolution.outcomes.reporting import report_outcome
from evolution.sessions.recording import SessionReport, add_messages, close_session, open_session
from evolution.sessions.validation import NewMessage
from evolution.worker.claims import claim_job, keep_lease
from evolution.worker.engine_run import run_engine
from evolution.worker.publication import publish
from playbooks.document.text import estimate_tokens
from playbooks.models import Bullet, Playbook, Trial
from playbooks.services.creation import clone_playbook
from playbooks.services.reading import Reading, read_playbook
from playbooks.services.seals import chain
from playbooks.services.trials import lock_to_publish
from playbooks.starters.loader import load_starters

EMAIL = "demo@example.org"
MARK = "demo"
DAYS = 60
NEVER = 10_000
# Its lessons contain commands and links, so they wait for review.
RISKY_DAY = 2
# The thresholds by which the history evolves, and that the playbooks keep.
ENOUGH, WEEK = 10, 168
NOTE = "Sample data from manage.py demo. "
MODELS = {"reflect": "gpt-4o-mini", "curate": "gpt-4o"}
SIZES = {"reflect": 1, "curate": 2}
MOST_READINGS = 40
"""Until one is of the wanted arm; while a version is taken back there is only one arm."""
SESSION_SHARE = 0.15
"""Share of the tasks that are reported by a session with its messages."""


@dataclass
class ScenarioRun:
    """A scenario in progress."""

    scenario: Scenario
    playbook: Playbook
    user: User
    keys: list[ApiKey]
    draw: random.Random
    lessons_reported: int = 0


def demo_user() -> User | None:
    """The demo account, if it exists. Raises Conflict if a person registered its address."""
    user = User.objects.filter(email=EMAIL).first()
    if user is not None and not user.settings.get(MARK):
        raise Conflict(
            f"{EMAIL} is registered by someone else, so no demo can be created.", code="demo"
        )
    return user


def build_demo(
    *, password: str, days: int = DAYS, scenarios: tuple[Scenario, ...] = SCENARIOS
) -> User:
    """Create the demo account with `days` of history, unless it exists.

    Raises Conflict if a person has its address.
    """
    user = demo_user()
    if user is not None:
        return user
    load_starters()
    # An account with a history needs no onboarding.
    marks = {MARK: True, "start": "done"}
    user = User.objects.create_user(EMAIL, password, email_verified=True, settings=marks)
    try:
        with without_limits():
            _simulate(user, scenarios, days=days)
    except BaseException:
        # A partial history would pass for a complete one at the next call.
        delete_account(user=user)
        raise
    return user


def remove_demo() -> bool:
    """Delete the demo account and its rows; False if there was none."""
    user = demo_user()
    if user is None:
        return False
    # No call of the demo was made, so nothing of them stays in the ledger.
    UsageRecord.objects.filter(user=user).delete()
    DailySpend.objects.filter(user_id=user.pk).delete()
    delete_account(user=user)
    return True


@contextmanager
def without_limits() -> Iterator[None]:
    """Disable rate limits and model calls in this process."""
    kept = settings.RATE_LIMITS, settings.ACE_ENGINE
    settings.RATE_LIMITS, settings.ACE_ENGINE = dict.fromkeys(settings.RATE_LIMITS), "rules"
    try:
        yield
    finally:
        settings.RATE_LIMITS, settings.ACE_ENGINE = kept


def _simulate(user: User, scenarios: tuple[Scenario, ...], *, days: int) -> None:
    draw = random.Random(7)  # noqa: S311 - demo data, no secret
    keys = [
        create_api_key(user=user, name=name, scopes=["report"], notify=False)[0] for name in KEYS
    ]
    runs = [ScenarioRun(one, _start(one, user), user, keys, draw) for one in scenarios]
    since = user.created_at - timedelta(seconds=1)
    backdate_rows(user, made_since=since, back=timedelta(days=days))
    for day in range(days, -1, -1):
        since = database_now() - timedelta(milliseconds=1)
        for run in runs:
            _simulate_day(run, day=day)
            with transaction.atomic():
                lock_to_publish(run.playbook)  # takes back what a trial has found harmful
            if Outcome.objects.pending().filter(playbook=run.playbook).count() >= ENOUGH:
                _evolve(run, trigger=EvolutionJob.Trigger.THRESHOLD)
            elif day == 1:  # a manual one yesterday; today's outcomes stay pending
                _evolve(run, trigger=EvolutionJob.Trigger.MANUAL)
        back = timedelta(days=day, minutes=draw.randint(1, 500) if day else 20)
        backdate_rows(user, made_since=since, back=back)
    user.api_keys.update(last_used_at=database_now() - timedelta(minutes=20))
    rows = Playbook.objects.filter(pk__in=[run.playbook.pk for run in runs])
    rows.update(outcome_threshold=ENOUGH, time_threshold_hours=WEEK)
    for run in runs:
        _seal_again(run.playbook)


def _seal_again(playbook: Playbook) -> None:
    """The seals say the times that the demo gave its versions."""
    previous = ""
    for version in playbook.versions.order_by("number"):
        version.sealed = version.sealed or {}
        version.sealed["time"] = version.created_at.astimezone(UTC).isoformat()
        previous = chain(previous, version.sealed)
        playbook.versions.filter(pk=version.pk).update(sealed=version.sealed, seal=previous)


def _start(scenario: Scenario, user: User) -> Playbook:
    starter = Playbook.objects.starters().get(name=scenario.starter)
    playbook = clone_playbook(playbook=starter, by=Principal.of(user), name=scenario.name)
    # The simulation decides when it evolves, not a worker of the instance.
    Playbook.objects.filter(pk=playbook.pk).update(
        description=NOTE + playbook.description, outcome_threshold=NEVER, time_threshold_hours=0
    )
    playbook.refresh_from_db()
    return playbook


def _simulate_day(run: ScenarioRun, *, day: int) -> None:
    """Report up to four outcomes; more succeed as lessons are learned.

    The first version on trial is a bad one, which is taken back.
    """
    draw = run.draw
    trials = Trial.objects.filter(playbook=run.playbook, kind=Trial.Kind.VERSION)
    first = trials.select_related("stable_version").order_by("created_at").first()
    trial = first if first is not None and first.is_open else None
    cited = list(
        Bullet.objects.filter(playbook=run.playbook, status="active")
        .order_by("-created_at", "public_id")
        .values_list("public_id", flat=True)
    )
    current = Playbook.objects.select_related("current_version").get(pk=run.playbook.pk)
    count = 4 if trial else draw.choice((0, 1, 2, 2, 3, 4)) if day > RISKY_DAY else 2
    for number in range(count):
        key, client = draw.choice(run.keys), draw.choice(CLIENTS)
        by = Principal(run.user, Principal.of(run.user).scopes, api_key=key).with_client(client)
        learned = run.lessons_reported / len(run.scenario.lessons)
        status = "success" if draw.random() < 0.45 + 0.45 * learned else "failure"
        status = "partial" if draw.random() < 0.12 else status
        reading = _read(current, by, wants_newest=number % 2 == 0)
        if trial is not None:
            is_bad = reading.version != trial.stable_version.number
            status = "failure" if draw.random() < (0.9 if is_bad else 0.1) else "success"
        report = SessionReport(
            outcome=status,
            task_description=draw.choice(run.scenario.tasks),
            notes=_note(run, status, day=day),
            signal=draw.choice(("test", "test", "human", "self_report")),
            bullet_ids=sorted(draw.sample(cited, k=min(2, len(cited)))),
        )
        if draw.random() < SESSION_SHARE:
            _record_session(current, by, reading, report)
            continue
        report_outcome(
            playbook=current,
            by=by,
            **vars(report),
            reasoning_trace=f"$ make test\n{draw.randint(20, 90)} passed\n",
            serving_id=reading.serving_id if draw.random() < 0.9 else "",
        )


def _read(playbook: Playbook, by: Principal, *, wants_newest: bool) -> Reading:
    """A reading of the wanted arm of a trial: by the trial's own coin each demo would differ."""
    newest = playbook.current_version.number if playbook.current_version else 0
    for _ in range(MOST_READINGS if playbook.open_trial_id else 1):
        reading = read_playbook(playbook=playbook, by=by)
        if (reading.version == newest) == wants_newest:
            break
    return reading


def _record_session(
    playbook: Playbook, by: Principal, reading: Reading, report: SessionReport
) -> None:
    """The task as a conversation, which is the trace of its outcome."""
    cited = [one for one in report.bullet_ids or () if f"[{one}]" in reading.content]
    used = ", ".join(f"[{one}]" for one in cited) or "none"
    steps = f"I read the code, changed one thing at a time and ran the tests. Used: {used}"
    tests = {"id": "call_1", "name": "run_tests", "arguments": '{"only": "failed"}'}
    session = open_session(
        by=by, playbook=playbook, serving_id=reading.serving_id, model=MODELS["curate"]
    )
    messages = [
        NewMessage("user", report.task_description),
        NewMessage("assistant", "I'll run the tests first.", tool_calls=[tests]),
        NewMessage(
            "tool", f"1 test, {report.outcome}", tool_name="run_tests", tool_call_id="call_1"
        ),
        NewMessage("assistant", steps, bullet_ids=cited),
    ]
    add_messages(session=session, messages=messages)
    close_session(session=session, by=by, report=replace(report, bullet_ids=cited))


def _note(run: ScenarioRun, status: str, *, day: int) -> str:
    if day == RISKY_DAY:
        return f"Lesson: {run.scenario.risky}"
    if status == "failure" and run.draw.random() < 0.4:
        return f"Avoid: {run.draw.choice(run.scenario.mistakes)}"
    if run.lessons_reported < len(run.scenario.lessons) and run.draw.random() < 0.11:
        run.lessons_reported += 1
        return f"Lesson: {run.scenario.lessons[run.lessons_reported - 1]}"
    return "" if status == "success" else "It took a second attempt."


def _evolve(run: ScenarioRun, *, trigger: str) -> None:
    """Run an evolution here: its claim commits with the job, so no worker takes it."""
    with transaction.atomic():
        new = {"playbook": run.playbook, "trigger": trigger, "triggered_by": run.user}
        job = EvolutionJob.objects.create(**new)
        claim = claim_job(str(job.pk))
    if claim is None:
        raise Conflict("The demo's evolution could not be begun.", code="demo")
    with keep_lease(claim):
        evolved = run_engine(claim)
        # Before publication, which sums up the calls of the job and records the model.
        _create_usage_records(run, job)
        claim.touch(engine="openai")
        publish(claim, evolved)


def _create_usage_records(run: ScenarioRun, job: EvolutionJob) -> None:
    """Record the model calls that an engine would make: one per reflection, one to curate."""
    key, now = run.draw.choice(run.keys), database_now()
    reflections = list(job.reflections.order_by("created_at", "outcome_id"))
    for row in reflections:
        row.content["reasoning"] = "Sample data: a model explains here how the task went."
    answers = {
        f"reflect:{row.outcome_id}": estimate_tokens(str(row.content)) for row in reflections
    }
    answers["curate"] = run.draw.randint(400, 900)
    records = [
        _usage_record(run, job, key, step=step, answer=answer, now=now)
        for step, answer in answers.items()
    ]
    for row, record in zip(reflections, records, strict=False):
        row.tokens = record.total_tokens
    Reflection.objects.bulk_update(reflections, ["tokens", "content"])
    UsageRecord.objects.bulk_create(records)


def _usage_record(
    run: ScenarioRun, job: EvolutionJob, key: ApiKey, *, step: str, answer: int, now: datetime
) -> UsageRecord:
    operation = step.partition(":")[0]
    model, prompt = MODELS[operation], run.draw.randint(2_000, 4_000) * SIZES[operation]
    price = price_call(
        model=model, prompt_tokens=prompt, completion_tokens=answer, cached_tokens=0, at=now
    )
    return UsageRecord(
        user=run.user,
        playbook_id=job.playbook_id,
        job_id=job.pk,
        api_key_id=key.pk,
        step=step,
        attempt=1,
        operation=operation,
        status=UsageRecord.Status.ANSWERED,
        ended_at=now,
        model=model,
        prompt_tokens=prompt,
        completion_tokens=answer,
        total_tokens=prompt + answer,
        cost_usd=price.cost,
        price_source="demo",
        metadata={MARK: True},
    )


def backdate_rows(user: User, *, made_since: datetime, back: timedelta) -> None:
    """Move all times of the user's rows since `made_since` back by `back`.

    The audit log is immutable and keeps the real times.
    """
    for rows in (*personal_rows(user), user.usage_records.all()):
        if rows.model is AuditEntry:
            continue
        for field in rows.model._meta.concrete_fields:
            if isinstance(field, DateTimeField) and field.name != "expires_at":
                found = rows.filter(**{f"{field.name}__gte": made_since})
                found.order_by().update(**{field.name: F(field.name) - back})
