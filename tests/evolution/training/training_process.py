"""A training in a process of its own, which a test can kill."""

import json
import os
import sys

import django
from django.conf import settings


def main(arguments: list[str]) -> None:
    for name, value in json.loads(os.environ["ACE_TEST_SETTINGS"]).items():
        setattr(settings, name, value)
    settings.DATABASES["default"]["NAME"] = os.environ["ACE_TEST_DATABASE"]
    django.setup()
    if point := os.environ.get("ACE_CRASH_AT"):
        from tests.harness.fault_injection.worker_process import arm  # noqa: PLC0415 - after the set-up, as it imports models

        arm(point)
    from django.core.management import call_command  # noqa: PLC0415 - as above

    call_command("ace_offline_train", *arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
