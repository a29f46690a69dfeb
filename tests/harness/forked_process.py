"""A process that a test kills: a fork of the test's own, on its database and with its settings.

A new interpreter needs two seconds of CPU until it works, a fork 50 ms.
"""

import importlib
import os
import signal
import traceback
from collections.abc import Callable
from typing import NoReturn

from django.db import connections

from tests.harness.waiting import wait_until


class ForkedProcess:
    """Runs `body`; its exit code is 0, 1 if that raised, or minus the signal that killed it."""

    def __init__(self, body: Callable[[], object]) -> None:
        # Two processes may not share a connection.
        connections.close_all()
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            _end_with(body)

    def wait(self, seconds: float) -> int:
        """The exit code; fails when it does not end in time."""
        wait_until(self._has_ended, seconds=seconds)
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def _has_ended(self) -> bool:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode is not None

    def __enter__(self) -> "ForkedProcess":
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is not None and not self._has_ended():
            self.kill()
        self.wait(60)


def kill_at(point: str) -> None:
    """From here on a call of `module:function`, or its `:end`, ends this process like kill -9."""
    module_name, function, *end = point.split(":")
    module = importlib.import_module(module_name)
    call: Callable[..., object] = getattr(module, function)

    def killed(*args: object, **kwargs: object) -> None:
        if end:
            call(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(module, function, killed)


def _end_with(body: Callable[[], object]) -> NoReturn:
    code = 1
    try:
        body()
        code = 0
    except BaseException:  # noqa: BLE001 - the edge of a process: nothing may escape it
        traceback.print_exc()
    finally:
        os._exit(code)
