"""Creates the demo account day by day with the services that users call, and deletes it."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
from evolution.models import EvolutionJob, Outcome
from evolution.outcomes.reporting import report_outcome
from evolution.worker.claims import claim_job, keep_lease
from evolution.worker.engine_run import run_engine
from evolution.worker.publication import publish
from playbooks.models import Bullet, Playbook
from playbooks.services.creation import clone_playbook
from playbooks.services.reading import read_playbook
from playbooks.services.seals import chain
from playbooks.starters.loader import load_starters

EMAIL = "demo@example.org"
MARK = "demo"
DAYS = 60
NEVER = 10_000
# The thresholds by which the history evolves, and that the playbooks keep.
ENOUGH, WEEK = 10, 168
NOTE = "Made-up data of manage.py demo. "
MODELS = {"reflect": "gpt-4o-mini", "curate": "gpt-4o"}
SIZES = {"reflect": 1, "curate": 2}


@dataclass
class ScenarioRun:
    """A scenario in progress."""

    scenario: Scenario
    playbook: Playbook
    lessons_reported: int = 0

    @property
    def pending(self) -> int:
        """How many outcomes no evolution has read."""
        return Outcome.objects.pending().filter(playbook=self.playbook).count()


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

    Raises Conflict with billing on (plans would limit it), or if a person has its address.
    """
    user = demo_user()
    if user is not None:
        return user
    if settings.BILLING_ENABLED:
        raise Conflict("Plans would limit a demo: set BILLING_ENABLED=false.", code="demo")
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
    by = Principal.of(user)
    keys = [
        create_api_key(user=user, name=name, scopes=["report"], notify=False)[0] for name in KEYS
    ]
    runs = [_start_scenario(scenario, by) for scenario in scenarios]
    since = user.created_at - timedelta(seconds=1)
    backdate_rows(user, made_since=since, back=timedelta(days=days))
    for day in range(days, -1, -1):
        since = database_now() - timedelta(milliseconds=1)
        for run in runs:
            _simulate_day(run, user, keys, draw, day=day)
            if run.pending >= ENOUGH:
                _evolve(run, user, keys, draw, trigger=EvolutionJob.Trigger.THRESHOLD)
            elif day == 1:  # a manual one yesterday; today's outcomes stay pending
                _evolve(run, user, keys, draw, trigger=EvolutionJob.Trigger.MANUAL)
        back = timedelta(days=day, minutes=draw.randint(1, 500) if day else 20)
        backdate_rows(user, made_since=since, back=back)
    _restore_thresholds(runs)
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


def _start_scenario(scenario: Scenario, by: Principal) -> ScenarioRun:
    starter = Playbook.objects.starters().get(name=scenario.starter)
    playbook = clone_playbook(playbook=starter, by=by, name=scenario.name)
    # The simulation decides when it evolves, not a worker of the instance.
    Playbook.objects.filter(pk=playbook.pk).update(
        description=NOTE + playbook.description, outcome_threshold=NEVER, time_threshold_hours=0
    )
    playbook.refresh_from_db()
    return ScenarioRun(scenario, playbook)


def _restore_thresholds(runs: list[ScenarioRun]) -> None:
    rows = Playbook.objects.filter(pk__in=[run.playbook.pk for run in runs])
    rows.update(outcome_threshold=ENOUGH, time_threshold_hours=WEEK)


def _simulate_day(
    run: ScenarioRun, user: User, keys: list[ApiKey], draw: random.Random, *, day: int
) -> None:
    """Report up to four outcomes; more succeed as lessons are learned."""
    cited = list(
        Bullet.objects.filter(playbook=run.playbook, status="active")
        .order_by("-created_at", "public_id")
        .values_list("public_id", flat=True)
    )
    current = Playbook.objects.select_related("current_version").get(pk=run.playbook.pk)
    for _ in range(draw.choice((0, 1, 2, 2, 3, 4)) if day > 1 else 2):
        key, client = draw.choice(keys), draw.choice(CLIENTS)
        by = Principal(user, Principal.of(user).scopes, api_key=key).with_client(client)
        learned = run.lessons_reported / len(run.scenario.lessons)
        status = "success" if draw.random() < 0.45 + 0.45 * learned else "failure"
        status = "partial" if draw.random() < 0.12 else status
        reading = read_playbook(playbook=current, by=by)
        report_outcome(
            playbook=current,
            by=by,
            task_description=draw.choice(run.scenario.tasks),
            outcome=status,
            notes=_note(run, status, draw),
            reasoning_trace=f"$ make test\n{draw.randint(20, 90)} passed\n",
            bullet_ids=sorted(draw.sample(cited, k=min(2, len(cited)))),
            serving_id=reading.serving_id if draw.random() < 0.9 else "",
            signal=draw.choice(("test", "test", "human", "self_report")),
        )


def _note(run: ScenarioRun, status: str, draw: random.Random) -> str:
    if status == "failure" and draw.random() < 0.4:
        return f"Avoid: {draw.choice(run.scenario.mistakes)}"
    if run.lessons_reported < len(run.scenario.lessons) and draw.random() < 0.11:
        run.lessons_reported += 1
        return f"Lesson: {run.scenario.lessons[run.lessons_reported - 1]}"
    return "" if status == "success" else "It took a second attempt."


def _evolve(
    run: ScenarioRun, user: User, keys: list[ApiKey], draw: random.Random, *, trigger: str
) -> None:
    """Run an evolution here: its claim commits with the job, so no worker takes it."""
    with transaction.atomic():
        job = EvolutionJob.objects.create(playbook=run.playbook, trigger=trigger, triggered_by=user)
        claim = claim_job(str(job.pk))
    if claim is None:
        raise Conflict("The demo's evolution could not be begun.", code="demo")
    with keep_lease(claim):
        evolved = run_engine(claim)
        # Before publication, which sums up the calls of the job and records the model.
        _create_usage_records(job, user, keys, draw)
        claim.touch(engine="openai")
        publish(claim, evolved)


def _create_usage_records(
    job: EvolutionJob, user: User, keys: list[ApiKey], draw: random.Random
) -> None:
    """Record the model calls that an engine would make: one per reflection, one to curate."""
    key, now = draw.choice(keys), database_now()
    reflected = job.reflections.order_by("created_at", "outcome_id")
    steps = [f"reflect:{pk}" for pk in reflected.values_list("outcome_id", flat=True)]
    UsageRecord.objects.bulk_create(
        _usage_record(job, user, key, draw, step=step, now=now) for step in (*steps, "curate")
    )


def _usage_record(
    job: EvolutionJob, user: User, key: ApiKey, draw: random.Random, *, step: str, now: datetime
) -> UsageRecord:
    operation = step.partition(":")[0]
    model, prompt = MODELS[operation], draw.randint(2_000, 4_000) * SIZES[operation]
    answer = prompt // draw.randint(7, 12)
    price = price_call(
        model=model, prompt_tokens=prompt, completion_tokens=answer, cached_tokens=0, at=now
    )
    return UsageRecord(
        user=user,
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
    for rows in personal_rows(user):
        if rows.model is AuditEntry:
            continue
        for field in rows.model._meta.concrete_fields:
            if isinstance(field, DateTimeField):
                found = rows.filter(**{f"{field.name}__gte": made_since})
                found.order_by().update(**{field.name: F(field.name) - back})
