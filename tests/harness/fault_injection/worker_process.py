"""A worker process that can be killed: `python -m tests.harness.fault_injection.worker_process`.

It runs one job on the database of the test that started it. `ACE_CRASH_AT` names the function
at whose start (or `:end`) the process kills itself as kill -9 would.
"""

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import django
from django.conf import settings


def crash(call: Callable[..., Any], *, after: bool) -> Callable[..., Any]:
    def killed(*args: Any, **kwargs: Any) -> Any:
        if after:
            call(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    return killed


def arm(point: str) -> None:
    """Replace `module:function` or `module:function:end` by one that kills this process."""
    module_name, function, *end = point.split(":")
    module = importlib.import_module(module_name)
    setattr(module, function, crash(getattr(module, function), after=bool(end)))


def main(job_id: str) -> None:
    for name, value in json.loads(os.environ["ACE_TEST_SETTINGS"]).items():
        setattr(settings, name, value)
    settings.DATABASES["default"]["NAME"] = os.environ["ACE_TEST_DATABASE"]
    django.setup()
    if point := os.environ.get("ACE_CRASH_AT"):
        arm(point)
    tasks = importlib.import_module("evolution.worker.tasks")
    sys.stdout.write(tasks.run_evolution(job_id))


if __name__ == "__main__":
    main(sys.argv[1])
