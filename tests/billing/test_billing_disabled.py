"""While billing is off, payment routes say so, and neither stripe nor dj-stripe is loaded."""

import subprocess
import sys

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import CommandError, call_command

from accounts.models import User
from evolution.worker.sweep import sweep
from tests.harness.rest_client import Rest

NOT_ENABLED = "Billing is not enabled on this server"


@pytest.mark.parametrize("path", ["/billing/subscribe", "/billing/portal", "/billing/webhook"])
def test_every_route_says_that_billing_is_not_enabled(alice: User, path: str) -> None:
    for rest in (Rest.of(alice), Rest()) if "webhook" in path else (Rest.of(alice),):
        answer = rest.post(path, {"plan": "pro"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "billing_disabled")
        assert NOT_ENABLED in answer.json()["error"]["message"]


def test_the_command_says_that_billing_is_not_enabled() -> None:
    with pytest.raises(CommandError, match=NOT_ENABLED):
        call_command("billing_setup", no_webhook=True)


@pytest.mark.django_db
def test_the_sweep_does_not_call_stripe() -> None:
    sweep()
    assert not apps.is_installed("djstripe")


def test_the_urls_load_neither_stripe_nor_the_mcp_sdk_nor_an_engine() -> None:
    unneeded = ["stripe", "djstripe", "mcp", "openai", "evolution.engine.providers.rules_engine"]
    code = (
        "import django, sys; django.setup(); import config.urls; "
        f"print([name for name in {unneeded} if name in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=settings.BASE_DIR, capture_output=True, text=True
    )
    assert ended.stdout.strip().splitlines()[-1] == "[]", ended.stderr
