"""Keeps a few child processes running, each in its own session, and ends all of them together.

A child that dies is restarted, later each time. One that keeps dying before all were ready ends
everything: a person is watching, and its output names the reason. Once ready, restarts never stop.
If the supervisor itself is killed, orphan_reaper.py ends the children. No Django here.

A child that `has_pulse` writes to a pipe while it is well, and is killed when it falls silent: a
frozen process does not die by itself. The broken pipe tells the child that its supervisor is gone.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from config.supervisor import orphan_reaper

MAX_DEATHS = 5  # of one child within DEATH_WINDOW seconds end a start
DEATH_WINDOW = 60.0
MAX_RESTART_DELAY = 10.0
SILENT_AFTER = 45.0  # seconds; a start takes up to 20 of them on a busy machine
FROZEN_AFTER = 15.0  # seconds, once it has called: then it calls every second
PULSE_VARIABLE = "ACE_PULSE_PIPE"  # the file descriptor to write to


@dataclass
class Child:
    """One command to keep running; `due` is when it may start next (monotonic seconds).

    `heard`: when its pulse was last felt, at first when it started.
    """

    name: str
    command: Sequence[str]
    has_pulse: bool = False
    restart_delay: float = 0.5  # seconds, doubled with each death
    process: subprocess.Popen[bytes] | None = None
    deaths: list[float] = field(default_factory=list)
    due: float = 0.0
    heard: float = 0.0
    has_called: bool = False
    pipe: int = -1

    def start(self) -> int:
        """Start the command in a session of its own; returns its pid."""
        self.heard, self.has_called = time.monotonic(), False
        self.pipe, written = os.pipe()
        os.set_blocking(self.pipe, False)
        self.process = subprocess.Popen(  # noqa: S603 - our own command lines
            self.command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ | {PULSE_VARIABLE: str(written)},
            pass_fds=[written],
        )
        os.close(written)
        return self.process.pid

    def is_silent(self, seconds: float) -> bool:
        """Feel its pulse; whether there was none for so long."""
        if not self.has_pulse or self.process is None:
            return False
        with suppress(BlockingIOError):
            if os.read(self.pipe, 65536):
                self.heard, self.has_called = time.monotonic(), True
        limit = min(seconds, FROZEN_AFTER) if self.has_called else seconds
        return time.monotonic() - self.heard > limit

    def record_death(self, now: float) -> float:
        """Remember a death and return the seconds to wait before the next start."""
        self.process = None
        os.close(self.pipe)
        self.deaths = [at for at in self.deaths if now - at < DEATH_WINDOW] + [now]
        pause: float = min(MAX_RESTART_DELAY, self.restart_delay * 2 ** (len(self.deaths) - 1))
        self.due = now + pause
        return pause


def log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Supervisor:
    """Runs `children` until a signal comes; calls `on_ready` once when `is_ready` turns true."""

    def __init__(
        self,
        children: Sequence[Child],
        *,
        is_ready: Callable[[], bool],
        on_ready: Callable[[], None],
        grace: float = orphan_reaper.GRACE_SECONDS,
        silent_after: float = SILENT_AFTER,
    ) -> None:
        self.children, self.is_ready, self.on_ready = children, is_ready, on_ready
        self.grace, self.silent_after = grace, silent_after
        self.announced = False
        self.signals = 0  # 1: end in order; 2: end now
        self.exit_code = 0

    def run(self) -> int:
        """Return 0 after a signal, 1 when the start failed; no child is left either way."""
        with self._listening() as wake, self._start_orphan_reaper() as self.report:
            try:
                while self._reap_children():
                    self._start()
                    self._announce_ready()
                    pause = min(2.0, self.silent_after) if self.announced else 0.2
                    self._sleep(wake, min(pause, self._next_start()))
            finally:
                self._end(wake)
        return self.exit_code

    def _start(self) -> None:
        for child in self.children:
            if child.process is None and child.due <= time.monotonic():
                self.report(f"+{child.start()}")

    def _reap_children(self) -> bool:
        """Record dead children and kill the rest of their groups; return whether to go on."""
        for child in self.children:
            if child.is_silent(self.silent_after) and child.process:
                silent = time.monotonic() - child.heard
                log(f"{child.name} has been silent for {silent:.1f} s: killing it.")
                orphan_reaper.send(child.process.pid, signal.SIGKILL)
                child.process.wait()
            if child.process is None or child.process.poll() is None:
                continue
            pid, code = child.process.pid, child.process.returncode
            orphan_reaper.send(pid, signal.SIGKILL)
            self.report(f"-{pid}")
            pause = child.record_death(time.monotonic())
            if len(child.deaths) >= MAX_DEATHS and not self.announced:
                log(f"{child.name} ended {MAX_DEATHS} times in a minute (code {code}): stopping.")
                self.exit_code = 1
            else:
                log(f"{child.name} ended with code {code}; starting it again in {pause:g} s.")
        return not self.signals and not self.exit_code

    def _announce_ready(self) -> None:
        if not self.announced and self.is_ready():
            self.announced = True
            self.on_ready()

    def _next_start(self) -> float:
        """Seconds until the next restart is due."""
        dues = [child.due for child in self.children if child.process is None]
        return max(0.0, min(dues, default=float("inf")) - time.monotonic())

    @staticmethod
    def _sleep(wake: int, seconds: float) -> None:
        """Sleep until a signal comes (a child's death is one), `seconds` at most."""
        ready, _, _ = select.select([wake], [], [], seconds)
        if ready:
            os.read(wake, 1024)

    def _end(self, wake: int) -> None:
        """SIGTERM to each child, which ends its own; after the grace time SIGKILL to each group."""
        if self.signals:
            log("Stopping. Ctrl-C again ends everything at once.")
        until = time.monotonic() + self.grace
        running = [child.process for child in self.children if child.process]
        for process in running:
            orphan_reaper.send(process.pid, signal.SIGTERM, leader_only=True)
        while self._any_left(running) and self.signals < 2 and time.monotonic() < until:
            self._sleep(wake, 0.1)
        orphan_reaper.kill_descendants(process.pid for process in running)
        for process in running:
            process.wait()
            self.report(f"-{process.pid}")

    @staticmethod
    def _any_left(running: Sequence[subprocess.Popen[bytes]]) -> bool:
        return any(process.poll() is None for process in running)

    @contextmanager
    def _listening(self) -> Iterator[int]:
        """Turn signals into bytes on a pipe, so that one select() waits for everything."""

        def count(number: int, frame: FrameType | None) -> None:
            self.signals += number != signal.SIGCHLD

        wake, written = os.pipe()
        os.set_blocking(written, False)
        names = [signal.SIGINT, signal.SIGTERM, signal.SIGCHLD]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it
            names.append(signal.SIGHUP)
        before = {name: signal.signal(name, count) for name in names}
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        try:
            yield wake
        finally:
            signal.set_wakeup_fd(-1)
            for name, old in before.items():
                signal.signal(name, old)
            os.close(wake)
            os.close(written)

    @contextmanager
    def _start_orphan_reaper(self) -> Iterator[Callable[[str], None]]:
        """Start the orphan reaper; yields the function that reports groups to it."""
        command = [sys.executable, "-I", str(Path(orphan_reaper.__file__))]
        with subprocess.Popen(  # noqa: S603 - our own file
            command, stdin=subprocess.PIPE, bufsize=0, start_new_session=True
        ) as watcher:
            pipe = watcher.stdin
            if pipe is None:
                raise RuntimeError("Popen was asked for a pipe")

            def report(line: str) -> None:
                with suppress(BrokenPipeError):  # it was killed: nobody watches, all else works
                    pipe.write(f"{line}\n".encode())

            yield report
