"""Settings of a real server with dj-stripe's tables made in one step; for the short form."""

from tests.harness.live_settings import *  # noqa: F403 - a settings module is its names

MIGRATION_MODULES = {"djstripe": "tests.billing.stripe.migrations"}
