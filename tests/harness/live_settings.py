"""config.settings.base for a platform that a test starts as real processes.

TEST_SETTINGS holds a JSON object of settings that no environment variable sets, such as a shorter
lease.
"""

import json
import os

from config.settings.base import *  # noqa: F403 - a settings module is its names

if "LOCK_TIMES" in os.environ:
    DATABASES["default"]["ENGINE"] = "tests.harness.timed_sqlite"  # noqa: F405 - as above
vars().update(json.loads(os.environ.get("TEST_SETTINGS", "{}")))
