"""A site with believable data, served as in production: for Lighthouse and the README's pictures.

Not a test and not imported by one: it sets the environment before Django reads it.
"""

import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accounts.models import User
    from accounts.scopes import Principal
    from evolution.models import EvolutionJob
    from playbooks.models import Playbook

EMAIL = "maya@example.org"
CLIENTS = ("claude-code 2.1.197", "codex 0.9.2", "cursor 1.7")
REPORTS = (
    ("Fix the flaky checkout test", "success", "lesson: Freeze the clock before asserting dates."),
    ("Upgrade the payment client", "failure", "avoid: Upgrading two major versions at once."),
    ("Add an index to orders", "success", "lesson: Read the query plan before and after."),
    ("Rename a settings module", "partial", "lesson: Search for the old name in strings too."),
    ("Speed up the import job", "success", "lesson: Measure one batch before changing its size."),
    ("Silence a deprecation warning", "failure", "avoid: Hiding a warning; mend its cause."),
)


@dataclass(frozen=True)
class Demo:
    """Where it is served, the cookie of who is logged in, and what is worth a look."""

    url: str
    cookie: str
    playbook: "Playbook"
    job: "EvolutionJob"

    @property
    def pages(self) -> dict[str, str]:
        one = self.playbook.get_absolute_url()
        return {
            "playbooks": "/playbooks",
            "playbook": one,
            "versions": f"{one}/versions",
            "diff": f"{one}/versions/3/diff?against=1",
            "outcomes": f"{one}/outcomes",
            "evolution": self.job.get_absolute_url(),
            "usage": "/usage",
            "keys": "/keys",
            "connect": "/connect",
            "starters": "/starters",
            "start": "/start",
        }


@contextmanager
def demo_site() -> Iterator[Demo]:
    """The site in a thread of this process, on a database of its own."""
    with tempfile.TemporaryDirectory(prefix="ace-demo-") as folder:
        _prepare(folder)
        from django.core.management import call_command  # noqa: PLC0415 - after the environment

        call_command("migrate", verbosity=0)
        call_command("collectstatic", interactive=False, verbosity=0)
        # WhiteNoise looks once at what was collected.
        from config.asgi import build_application  # noqa: PLC0415 - see above
        from tests.live import serving  # noqa: PLC0415 - as above

        user, playbook, job = build_demo()
        with serving(build_application()) as url:
            yield Demo(url.replace("127.0.0.1", "localhost"), _cookie(user), playbook, job)


def _prepare(folder: str) -> None:
    secret = "demo-" * 10
    os.environ.update(
        DJANGO_SETTINGS_MODULE="config.settings",
        DJANGO_ALLOW_ASYNC_UNSAFE="true",
        ACE_DATA_DIR=folder,
        ACE_LOCAL="false",
        HTTPS="false",
        DATABASE_URL="",
        LOG_LEVEL="error",
        SECRET_KEY=secret,
        JWT_SECRET_KEY=secret,
        FIELD_ENCRYPTION_KEYS=secret,
    )
    import django  # noqa: PLC0415 - after the environment

    django.setup()


def _cookie(user: "User") -> str:
    from django.test import Client  # noqa: PLC0415 - after the environment

    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


def build_demo() -> "tuple[User, Playbook, EvolutionJob]":
    """One person, two playbooks that have learned, keys, and a month of usage."""
    from accounts.scopes import Principal  # noqa: PLC0415 - after the environment
    from accounts.services import create_api_key  # noqa: PLC0415 - as above
    from evolution.models import EvolutionJob  # noqa: PLC0415 - as above
    from playbooks.models import Playbook  # noqa: PLC0415 - as above
    from playbooks.services import clone_playbook, load_starters  # noqa: PLC0415 - as above
    from tests.factories import make_user  # noqa: PLC0415 - as above

    load_starters()
    user = make_user(EMAIL)
    by = Principal.of(user)
    starters = Playbook.objects.starters().order_by("name")
    playbooks = [clone_playbook(playbook=starter, by=by) for starter in starters[:3]]
    for name in ("laptop", "nightly build"):
        create_api_key(user=user, name=name, scopes=["read", "write"])
    for number, (task, status, note) in enumerate(REPORTS * 2):
        cited = f"str-0000{number % 5 + 1}"
        _report(playbooks[1], by.with_client(CLIENTS[number % 3]), (task, status, note), cited)
        if number % 4 == 3:
            _evolve(playbooks[1], by)
    _report(playbooks[0], by.with_client(CLIENTS[0]), REPORTS[0], "str-00001")
    _use(user, playbooks[1])
    made = EvolutionJob.objects.filter(playbook=playbooks[1]).exclude(to_version=None)
    return user, Playbook.objects.get(pk=playbooks[1].pk), made.earliest("created_at")


def _report(playbook: "Playbook", by: "Principal", told: tuple[str, str, str], cited: str) -> None:
    from evolution.services import report_outcome  # noqa: PLC0415 - after the environment

    task, status, note = told
    report_outcome(
        playbook=playbook,
        by=by,
        task_description=task,
        outcome=status,
        notes=note,
        reasoning_trace="$ make test\n41 passed\n",
        bullet_ids=[cited],
        signal="test",
    )


def _evolve(playbook: "Playbook", by: "Principal") -> None:
    from evolution.services import trigger_evolution  # noqa: PLC0415 - after the environment
    from evolution.worker import run_evolution  # noqa: PLC0415 - as above

    run_evolution(str(trigger_evolution(playbook=playbook, by=by).job.pk))


def _use(user: "User", playbook: "Playbook") -> None:
    """A month of calls, as if a model had done the work."""
    from django.utils import timezone  # noqa: PLC0415 - after the environment

    from accounts.models import ApiKey  # noqa: PLC0415 - as above
    from billing.models import UsageRecord  # noqa: PLC0415 - as above

    draw, keys = random.Random(7), list(ApiKey.objects.all())
    for day in range(30):
        for model, price in (("gpt-4o-mini", 15), ("gpt-4o", 250)):
            tokens = draw.randint(4_000, 60_000) // (1 if price < 100 else 8)
            UsageRecord.objects.create(
                user=user,
                playbook_id=playbook.pk,
                api_key_id=draw.choice(keys).pk,
                step="curate",
                attempt=1,
                operation="curate",
                status="answered",
                model=model,
                prompt_tokens=tokens,
                completion_tokens=tokens // 10,
                total_tokens=tokens + tokens // 10,
                cost_usd=Decimal(tokens * price) / 100_000_000,
                created_at=timezone.now() - timedelta(days=day, hours=1),
            )
