"""Billing off, on, off and on again over one database: `make billing-migrations`.

Each stage is a process of its own, as a server is started. With dj-stripe's real migrations, on
SQLite and on PostgreSQL; the suite runs the short form, with one migration of the tests' own.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from tests.harness.fake_stripe.server import FakeStripe, fake_stripe
from tests.harness.fake_stripe.world import GOOD
from tests.harness.postgres import PostgresNotFound, temporary_cluster

KEY = "sk_test_" + "fake" * 8
MAIL = "alice@example.org"


def clean() -> None:
    """Check that no migration is missing or unapplied."""
    from django.core.management import call_command  # noqa: PLC0415 - after django.setup()

    call_command("check")
    call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)
    call_command("migrate", check_unapplied=True, verbosity=0)


def migrate() -> None:
    from django.core.management import call_command  # noqa: PLC0415 - as above

    call_command("migrate", verbosity=0)


def begin() -> None:
    """Off: migrate, and register a user."""
    from accounts.models import User  # noqa: PLC0415 - as above

    migrate()
    User.objects.create_user(MAIL, "correct horse battery")


def buy() -> None:
    """On: buy a plan without receiving events; prints the plan that applies."""
    from django.core.management import call_command  # noqa: PLC0415 - as above

    from accounts.models import User  # noqa: PLC0415 - as above
    from billing.plans.entitlements import plan_of  # noqa: PLC0415 - as above
    from billing.stripe import subscriptions  # noqa: PLC0415 - as above

    migrate()
    clean()
    call_command("billing_setup", price=["pro=29", "scale=99"], no_webhook=True, verbosity=0)
    user = User.objects.get(email=MAIL)
    page = subscriptions.subscribe(user=user, plan="scale", site="http://localhost")
    assert httpx2.post(page, data={"card": GOOD}, trust_env=False).status_code == 303
    subscriptions.refresh_subscription(user=user)
    print(getattr(plan_of(user), "slug", ""))


def resync() -> None:
    """On: the worker's sync; prints how many customers are left."""
    from djstripe.models import Customer  # noqa: PLC0415 - as above

    from billing.stripe import sync  # noqa: PLC0415 - as above

    sync.resync_stale_account()
    print(Customer.objects.count())


def leave() -> None:
    """Off again: no limits apply, the admin works, and the user deletes the account."""
    from django.test import Client  # noqa: PLC0415 - as above

    from accounts.models import User  # noqa: PLC0415 - as above
    from accounts.services.personal_data import delete_account, export_account  # noqa: PLC0415 - as above
    from billing.plans.entitlements import plan_of  # noqa: PLC0415 - as above

    clean()
    staff = User.objects.create_superuser("staff@example.org", "correct horse battery")
    client = Client(headers={"host": "localhost"})
    client.force_login(staff)
    for page in ("/billing", "/admin/", "/admin/accounts/user/", "/admin/billing/billingaccount/"):
        assert client.get(page).status_code == 200, page
    user = User.objects.get(email=MAIL)
    assert plan_of(user) is None
    export_account(user=user)
    delete_account(user=user)


STAGES: dict[str, Callable[[], None]] = {
    stage.__name__: stage for stage in (begin, buy, resync, leave)
}


class Server:
    """One database, and the environment of the server on it."""

    def __init__(self, fake: FakeStripe, settings: str, **environment: str) -> None:
        self.fake = fake
        self.environment = os.environ | {
            "ACE_LOCAL": "true",
            "DJANGO_SETTINGS_MODULE": settings,
            "STRIPE_SECRET_KEY": KEY,
            "TEST_SETTINGS": json.dumps({"STRIPE_API_BASE": fake.base}),
            **environment,
        }

    def run(self, stage: str, *, billing: bool) -> str:
        """Run a stage, which must succeed; returns the last line it prints."""
        began = time.monotonic()
        ended = subprocess.run(
            [sys.executable, "-m", "tests.billing.stripe.billing_toggle", stage],
            env=self.environment | {"BILLING_ENABLED": "true" if billing else "false"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, f"{stage}: {ended.stdout}{ended.stderr}"
        print(f"{stage}, billing {'on' if billing else 'off'}: {time.monotonic() - began:.0f} s")
        return (ended.stdout.strip().splitlines() or [""])[-1]

    def switch(self) -> None:
        """Off, on, off, on: the plan applies while on, and the deleted user's subscription ends."""
        self.run("begin", billing=False)
        assert self.run("buy", billing=True) == "scale"
        self.run("leave", billing=False)
        output = self.run("resync", billing=True)
        assert output == "0", output
        assert self.fake.subscription()["status"] == "canceled"


def switch(settings: str, *, template: str = "", **environment: str) -> None:
    """All stages on a fresh database: SQLite in ACE_DATA_DIR, else DATABASE_URL.

    `template` is an SQLite file that a first start has migrated.
    """
    with fake_stripe() as fake, tempfile.TemporaryDirectory() as folder:
        fake.api.key = KEY
        if template:
            shutil.copyfile(template, Path(folder) / "ace.sqlite3")
        Server(fake, settings, ACE_DATA_DIR=folder, **environment).switch()


def main() -> None:
    """Both databases, with dj-stripe's own migrations."""
    print("SQLite")
    switch("tests.harness.live_settings", DATABASE_URL="")
    try:
        with temporary_cluster() as url:
            print("PostgreSQL")
            switch("tests.harness.live_settings", DATABASE_URL=url)
    except PostgresNotFound as error:
        print(f"PostgreSQL was not tried: {error}.")


if __name__ == "__main__":
    if sys.argv[1:]:
        import django

        django.setup()
        chosen: Any = STAGES[sys.argv[1]]
        chosen()
    else:
        main()
