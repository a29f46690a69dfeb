"""Settings of a real server that creates dj-stripe's tables in one migration."""

from tests.harness.live_settings import *  # noqa: F403 - a settings module is its names

MIGRATION_MODULES = {"djstripe": "tests.billing.stripe.migrations"}
