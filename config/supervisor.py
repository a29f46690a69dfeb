"""The supervisor process that `manage.py run` and `manage.py run_worker` become.

It keeps child processes running, each in its own session, and ends all of them together. A child
that dies is restarted, later each time. One that keeps dying before all were ready ends everything:
a person is watching, and its output names the reason. Once ready, restarts never stop.

Every child writes to a pipe each second, and is killed when it falls silent: a frozen process does
not die by itself. The broken pipe tells a child that its supervisor was killed, and it ends itself;
Linux wakes one that was frozen.

Nothing here imports Django, which would keep 90 MB in a process that only waits.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from config.observability.healthcheck import connect_host, is_serving

GRACE_SECONDS = 25.0  # between SIGTERM and SIGKILL; a worker gives its jobs 20 of them
MAX_DEATHS = 5  # of one child within DEATH_WINDOW seconds end a start
DEATH_WINDOW = 60.0
MAX_RESTART_DELAY = 10.0
SILENT_AFTER = 45.0  # seconds; a start takes up to 20 of them on a busy machine
FROZEN_AFTER = 15.0  # seconds, once it has called
PULSE_SECONDS = 1.0
PULSE_VARIABLE = "ACE_PULSE_PIPE"  # the file descriptor to write to
PR_SET_PDEATHSIG = 1
PRCTL: Any = getattr(ctypes.CDLL(None), "prctl", None)  # Linux
LOOK_SECONDS = 0.2  # five times as long once all are ready


def exec_supervisor(commands: dict[str, list[str]], host: str = "", port: int = 0) -> NoReturn:
    """Replace this process, keeping its pid, with a supervisor over the commands.

    It is ready once `/healthz` answers at the address; without a port at once.
    """
    os.chdir(Path(__file__).parents[1])
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    again = [sys.executable, "-m", "config.supervisor", json.dumps([commands, host, port])]
    os.execv(sys.executable, again)  # noqa: S606 - our own file, no shell


def start_pulse(*, is_well: Callable[[], bool], on_orphaned: Callable[[], None]) -> None:
    """Tell the supervisor each second that this process is well; on its end call `on_orphaned`.

    From a thread: what the process does may wait for a database for longer than it may be silent.
    """
    pipe = int(os.environ.pop(PULSE_VARIABLE, -1))
    if pipe < 0:
        return  # started by hand, or by systemd
    os.set_blocking(pipe, False)

    def beat() -> None:
        while True:
            try:
                if is_well():
                    os.write(pipe, b".")
            except BlockingIOError:
                pass  # the supervisor sleeps
            except BrokenPipeError:
                on_orphaned()
                return
            time.sleep(PULSE_SECONDS)

    threading.Thread(target=beat, name="pulse", daemon=True).start()


def _wake_when_orphaned() -> None:
    """In the child: its parent's death continues it when it is stopped, and else does nothing."""
    PRCTL(PR_SET_PDEATHSIG, signal.SIGCONT)


def log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@dataclass
class Child:
    """One command to keep running; `due` is when it may start next (monotonic seconds).

    `heard`: when its pulse was last felt, at first when it started.
    """

    name: str
    command: Sequence[str]
    restart_delay: float = 0.5  # seconds, doubled with each death
    process: subprocess.Popen[bytes] | None = None
    deaths: list[float] = field(default_factory=list)
    due: float = 0.0
    heard: float = 0.0
    has_called: bool = False
    pipe: int = -1

    def start(self) -> None:
        self.heard, self.has_called = time.monotonic(), False
        self.pipe, written = os.pipe()
        os.set_blocking(self.pipe, False)
        self.process = subprocess.Popen(  # noqa: S603 - our own command lines
            self.command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ | {PULSE_VARIABLE: str(written)},
            pass_fds=[written],
            preexec_fn=_wake_when_orphaned if PRCTL else None,  # noqa: PLW1509 - no threads here
        )
        os.close(written)

    def is_silent(self, seconds: float) -> bool:
        """Feel its pulse; whether there was none for so long."""
        with suppress(BlockingIOError):
            if os.read(self.pipe, 65536):
                self.heard, self.has_called = time.monotonic(), True
        limit = min(seconds, FROZEN_AFTER) if self.has_called else seconds
        return time.monotonic() - self.heard > limit

    def send(self, number: signal.Signals) -> None:
        """Signal the child's group; SIGTERM only the child, which ends its own."""
        if self.process is not None:
            send_signal = os.kill if number == signal.SIGTERM else os.killpg
            with suppress(ProcessLookupError):
                send_signal(self.process.pid, number)

    def record_death(self) -> float:
        """End what it left of its group; return the seconds to wait before the next start."""
        self.send(signal.SIGKILL)
        os.close(self.pipe)
        self.process, now = None, time.monotonic()
        self.deaths = [at for at in self.deaths if now - at < DEATH_WINDOW] + [now]
        pause: float = min(MAX_RESTART_DELAY, self.restart_delay * 2 ** (len(self.deaths) - 1))
        self.due = now + pause
        return pause


@dataclass
class Supervisor:
    """Runs `children` until a signal comes; calls `on_ready` once when `is_ready` turns true."""

    children: Sequence[Child]
    is_ready: Callable[[], bool]
    on_ready: Callable[[], object]
    grace: float = GRACE_SECONDS
    silent_after: float = SILENT_AFTER
    announced: bool = False
    signals: int = 0  # 1: end in order; 2: end now
    exit_code: int = 0

    def run(self) -> int:
        """Return 0 after a signal, 1 when the start failed; no child is left either way."""
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it
            numbers.append(signal.SIGHUP)
        for number in numbers:
            signal.signal(number, self._count_signal)
        try:
            while not self.signals and not self.exit_code:
                for child in self.children:
                    self._tend(child)
                if not self.announced and self.is_ready():
                    self.announced = True
                    self.on_ready()
                time.sleep(LOOK_SECONDS * (5 if self.announced else 1))
        finally:
            self._end()
        return self.exit_code

    def _count_signal(self, number: int, frame: FrameType | None) -> None:
        self.signals += 1

    def _tend(self, child: Child) -> None:
        """Start the child when it is due, kill it when it is silent, record its death."""
        if child.process is None:
            if child.due <= time.monotonic():
                child.start()
            return
        if child.is_silent(self.silent_after):
            silent = time.monotonic() - child.heard
            log(f"{child.name} has been silent for {silent:.1f} s: killing it.")
            child.send(signal.SIGKILL)
            child.process.wait()
        if (code := child.process.poll()) is None:
            return
        pause = child.record_death()
        if len(child.deaths) >= MAX_DEATHS and not self.announced:
            log(f"{child.name} exited {MAX_DEATHS} times in a minute (code {code}): stopping.")
            self.exit_code = 1
        else:
            log(f"{child.name} exited with code {code}; restarting in {pause:g} s.")

    def _end(self) -> None:
        """SIGTERM to each child; after the grace time SIGKILL to each group."""
        if self.signals:
            log("Stopping. Ctrl-C again ends everything at once.")
        until = time.monotonic() + self.grace
        for child in self.children:
            child.send(signal.SIGTERM)
        running = [child.process for child in self.children if child.process]
        while any(process.poll() is None for process in running):
            if self.signals > 1 or time.monotonic() > until:
                break
            time.sleep(0.05)
        for child in self.children:
            child.send(signal.SIGKILL)
        for process in running:
            process.wait()


def build_supervisor(commands: dict[str, list[str]], host: str, port: int) -> Supervisor:
    """A supervisor that prints `ready` and the address once the platform is healthy."""
    name = connect_host(host)
    address = f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
    return Supervisor(
        [Child(name, command) for name, command in commands.items()],
        is_ready=lambda: not port or is_serving(host, port),
        on_ready=lambda: print(f"ready {address}", flush=True) if port else None,
    )


if __name__ == "__main__":
    sys.exit(build_supervisor(*json.loads(sys.argv[1])).run())
