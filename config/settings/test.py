"""Settings of the tests: fixed secrets, a fast hasher, SQLite or TEST_DATABASE_URL."""

import os
import tempfile
from pathlib import Path

os.environ.update(
    SECRET_KEY="test-" * 10,
    JWT_SECRET_KEY="jwt-test-" * 5,
    FIELD_ENCRYPTION_KEYS="field-test-" * 4,
    STAFF_SECOND_FACTOR="false",
    EMAIL_URL="",
    EMAIL_VERIFICATION="",
    DATABASE_URL=os.environ.get("TEST_DATABASE_URL", ""),
    ACE_DATA_DIR=tempfile.mkdtemp(prefix="ace-test-"),
    HTTPS="false",
    **dict.fromkeys(("OPENAI_API_KEY", "OPENAI_BASE_URL", "REDIS_URL", "ACE_ENGINE"), ""),
    ACE_MODEL_OPTIONS="",
    # tests/run.py runs tests/billing/stripe once more, with billing on.
    BILLING_ENABLED=os.environ.get("TEST_BILLING_ENABLED", "false"),
    STRIPE_SECRET_KEY="sk_test_" + "fake" * 8,
    STRIPE_WEBHOOK_SECRET="",
)
del os.environ["ACE_ENGINE"]

from config.settings.base import *  # noqa: E402, F403 - the environment had to be set first
from config.settings.base import (  # noqa: E402 - as above
    BILLING_ENABLED,
    DATA_DIR,
    DATABASES,
    EMBEDDED,
    RATE_LIMITS,
)

DATABASES["default"]["OPTIONS"].pop("pool", None)
# Tests ask more in a minute than a person, and all for one.
RATE_LIMITS = RATE_LIMITS | {"requests": "1000000/m", "create_playbook": "1000000/h"}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
STATIC_ROOT, WHITENOISE_USE_FINDERS = None, True
# Finds files on request: listing all 240 took a third of a test with a client.
WHITENOISE_AUTOREFRESH = True
if EMBEDDED:
    # A file, so that threads and child processes of a test share the database.
    DATABASES["default"]["TEST"] = {"NAME": str(Path(DATA_DIR) / "test.sqlite3")}
    # Tests kill processes, not machines, so no write has to wait for the disk.
    DATABASES["default"]["OPTIONS"] = DATABASES["default"]["OPTIONS"] | {
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;"
    }
else:
    # The processes of one run each have theirs.
    DATABASES["default"]["TEST"] = {"NAME": f"test_{DATABASES['default']['NAME']}_{os.getpid()}"}
    if template := os.environ.get("TEST_DATABASE_TEMPLATE"):
        DATABASES["default"]["TEST"]["TEMPLATE"] = template
if BILLING_ENABLED:
    # dj-stripe's own take about 70 s of CPU; `make billing-migrations` runs those.
    MIGRATION_MODULES = {"djstripe": "tests.billing.stripe.migrations"}
