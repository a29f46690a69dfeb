"""Makes the demo by the functions that users reach, a day at a time, and takes it away again."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import DateTimeField, F

from accounts.keys.api_keys import create_api_key
from accounts.models import ApiKey, User
from accounts.services.personal_data import delete_account, personal_rows
from billing.models import UsageRecord
from billing.pricing.calculator import price_call
from config.demo.scenarios import CLIENTS, KEYS, SCENARIOS, Scenario
from core.clock import database_now
from core.errors import Conflict
from core.models import AuditEntry
from core.security.scopes import Principal
from evolution.models import EvolutionJob, Outcome
from evolution.outcomes.reporting import report_outcome
from evolution.worker.claims import claim_job
from evolution.worker.engine_run import run_engine
from evolution.worker.lease_renewal import LeaseRenewal
from evolution.worker.publication import publish
from playbooks.models import Bullet, Playbook
from playbooks.services.creation import clone_playbook
from playbooks.services.reading import read_playbook
from playbooks.starters.loader import load_starters

EMAIL = "demo@example.org"
MARK = "demo"
DAYS = 60
NEVER = 10_000
# The playbooks' own thresholds, by which their history went and a worker leaves them alone.
ENOUGH, WEEK = 10, 168
NOTE = "Made-up data of manage.py demo. "
MODELS = {"reflect": "gpt-4o-mini", "curate": "gpt-4o"}
SIZES = {"reflect": 1, "curate": 2}


@dataclass
class ScenarioRun:
    """One story on its way: what is still to be learned."""

    story: Scenario
    playbook: Playbook
    told: int = 0

    @property
    def pending(self) -> int:
        """How many outcomes no evolution has read."""
        return Outcome.objects.pending().filter(playbook=self.playbook).count()


def demo_user() -> User | None:
    """The demo's account, if there is one. Raises Conflict: a person has that address."""
    user = User.objects.filter(email=EMAIL).first()
    if user is not None and not user.settings.get(MARK):
        raise Conflict(f"Somebody registered {EMAIL}: there is no room for a demo.", code="demo")
    return user


def build_demo(
    *, password: str, days: int = DAYS, stories: tuple[Scenario, ...] = SCENARIOS
) -> User:
    """The demo's account has `days` of history; one that is there is left as it is.

    Raises Conflict: billing is on (plans would limit it), or a person has the demo's address.
    """
    user = demo_user()
    if user is not None:
        return user
    if settings.BILLING_ENABLED:
        raise Conflict("Plans would limit a demo: set BILLING_ENABLED=false.", code="demo")
    load_starters()
    # The first steps are over for somebody with sixty days behind them.
    marks = {MARK: True, "start": "done"}
    user = User.objects.create_user(EMAIL, password, email_verified=True, settings=marks)
    try:
        with without_limits():
            _simulate(user, stories, days=days)
    except BaseException:
        # Half a history would pass for a whole one at the next call.
        delete_account(user=user)
        raise
    return user


def remove_demo() -> bool:
    """The demo's account and every row of it are gone; False when there was none."""
    user = demo_user()
    if user is None:
        return False
    delete_account(user=user)
    return True


@contextmanager
def without_limits() -> Iterator[None]:
    """In this process no limit counts and no model is asked, whatever the instance uses."""
    kept = settings.RATE_LIMITS, settings.ACE_ENGINE
    settings.RATE_LIMITS, settings.ACE_ENGINE = dict.fromkeys(settings.RATE_LIMITS), "rules"
    try:
        yield
    finally:
        settings.RATE_LIMITS, settings.ACE_ENGINE = kept


def _simulate(user: User, stories: tuple[Scenario, ...], *, days: int) -> None:
    draw = random.Random(7)  # noqa: S311 - a story, no secret
    by = Principal.of(user)
    keys = [create_api_key(user=user, name=name, scopes=["read", "write"])[0] for name in KEYS]
    tellings = [_start_scenario(story, by) for story in stories]
    since = user.created_at - timedelta(seconds=1)
    backdate_rows(user, made_since=since, back=timedelta(days=days))
    for day in range(days, -1, -1):
        since = database_now() - timedelta(milliseconds=1)
        for telling in tellings:
            _simulate_day(telling, user, keys, draw, day=day)
            if telling.pending >= ENOUGH:
                _evolve(telling, user, keys, draw, trigger=EvolutionJob.Trigger.THRESHOLD)
            elif day == 1:  # somebody wanted to see it; today's outcomes wait
                _evolve(telling, user, keys, draw, trigger=EvolutionJob.Trigger.MANUAL)
        back = timedelta(days=day, minutes=draw.randint(1, 500) if day else 20)
        backdate_rows(user, made_since=since, back=back)
    _restore_thresholds(tellings)


def _start_scenario(story: Scenario, by: Principal) -> ScenarioRun:
    starter = Playbook.objects.starters().get(name=story.starter)
    playbook = clone_playbook(playbook=starter, by=by, name=story.name)
    # The history decides when it evolves; no worker of the instance joins in.
    Playbook.objects.filter(pk=playbook.pk).update(
        description=NOTE + playbook.description, outcome_threshold=NEVER, time_threshold_hours=0
    )
    playbook.refresh_from_db()
    return ScenarioRun(story, playbook)


def _restore_thresholds(tellings: list[ScenarioRun]) -> None:
    rows = Playbook.objects.filter(pk__in=[telling.playbook.pk for telling in tellings])
    rows.update(outcome_threshold=ENOUGH, time_threshold_hours=WEEK)


def _simulate_day(
    telling: ScenarioRun, user: User, keys: list[ApiKey], draw: random.Random, *, day: int
) -> None:
    """Up to four outcomes; the more was learned, the more of them succeed."""
    cited = list(
        Bullet.objects.filter(playbook=telling.playbook, status="active")
        .order_by("-created_at", "public_id")
        .values_list("public_id", flat=True)
    )
    current = Playbook.objects.select_related("current_version").get(pk=telling.playbook.pk)
    for _ in range(draw.choice((0, 1, 2, 2, 3, 4)) if day > 1 else 2):
        key, client = draw.choice(keys), draw.choice(CLIENTS)
        by = Principal(user, Principal.of(user).scopes, api_key=key).with_client(client)
        learned = telling.told / len(telling.story.lessons)
        status = "success" if draw.random() < 0.45 + 0.45 * learned else "failure"
        status = "partial" if draw.random() < 0.12 else status
        reading = read_playbook(playbook=current, by=by)
        report_outcome(
            playbook=current,
            by=by,
            task_description=draw.choice(telling.story.tasks),
            outcome=status,
            notes=_note(telling, status, draw),
            reasoning_trace=f"$ make test\n{draw.randint(20, 90)} passed\n",
            bullet_ids=sorted(draw.sample(cited, k=min(2, len(cited)))),
            serving_id=reading.serving_id if draw.random() < 0.9 else "",
            signal=draw.choice(("test", "test", "human", "self_report")),
        )


def _note(telling: ScenarioRun, status: str, draw: random.Random) -> str:
    if status == "failure" and draw.random() < 0.4:
        return f"Avoid: {draw.choice(telling.story.mistakes)}"
    if telling.told < len(telling.story.lessons) and draw.random() < 0.11:
        telling.told += 1
        return f"Lesson: {telling.story.lessons[telling.told - 1]}"
    return "" if status == "success" else "It took a second attempt."


def _evolve(
    telling: ScenarioRun, user: User, keys: list[ApiKey], draw: random.Random, *, trigger: str
) -> None:
    """One evolution, begun and run here: its claim commits with the job, so no worker takes it."""
    with transaction.atomic():
        job = EvolutionJob.objects.create(
            playbook=telling.playbook, trigger=trigger, triggered_by=user
        )
        claim = claim_job(str(job.pk))
    if claim is None:
        raise Conflict("The demo's evolution could not be begun.", code="demo")
    with LeaseRenewal(claim):
        evolved = run_engine(claim)
        # Before it is published, which sums up the calls of the job and notes who wrote the text.
        _create_usage_records(job, user, keys, draw)
        claim.touch(engine="openai")
        publish(claim, evolved)


def _create_usage_records(
    job: EvolutionJob, user: User, keys: list[ApiKey], draw: random.Random
) -> None:
    """The job's calls as a model would have made them: for each reflection, and to curate."""
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
    """Every time of the user's rows since `made_since` lies `back` earlier.

    The audit log keeps the real time: nobody may change it.
    """
    for rows in personal_rows(user):
        if rows.model is AuditEntry:
            continue
        for field in rows.model._meta.concrete_fields:
            if isinstance(field, DateTimeField):
                found = rows.filter(**{f"{field.name}__gte": made_since})
                found.order_by().update(**{field.name: F(field.name) - back})
