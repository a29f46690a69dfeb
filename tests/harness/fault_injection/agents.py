"""A whole platform under fault, and agents that report to it over REST until they are answered."""

import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from accounts.keys.key_format import mint
from tests.factories import ACE_TEXT
from tests.harness import platform_process as journeys
from tests.harness.fake_llm.model import FakeLLM
from tests.harness.platform_process import Platform, live_settings, running_platform
from tests.harness.waiting import wait_until

QUICK = {
    **live_settings(JOB_LEASE_SECONDS=6, JOB_HEARTBEAT_SECONDS=2, LLM_CONCURRENCY=4),
    "EVOLUTION_OUTCOME_THRESHOLD": "1",
    "RATE_LIMITS": "requests=1000000/m,report_outcome=1000000/m,trigger_evolution=1000000/m",
    "LOG_LEVEL": "error",
}


class Rest:
    """The REST door of a platform."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.client = httpx2.Client(
            base_url=f"{platform.url}/api/v1",
            headers={"Authorization": f"Bearer {platform.key}"},
            trust_env=False,
            timeout=30,
        )
        self.refused = 0

    def try_(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The answer, or None when nobody answered or the answer was no 2xx."""
        try:
            answer = self.client.request(method, path, json=body, headers=headers)
        except httpx2.HTTPError:
            self.refused += 1
            return None
        self.refused += answer.status_code >= 300
        return answer.json() if answer.status_code < 300 else None

    def ask(self, method: str, path: str, body: Any = None, *, seconds: float = 60) -> Any:
        """The answer, asked for until it comes; one key, so that it happens once."""
        found: list[Any] = []
        key = str(uuid.uuid4())

        def answered() -> bool:
            answer = self.try_(method, path, body, **{"Idempotency-Key": key})
            if answer is not None:
                found.append(answer)
            return answer is not None

        wait_until(answered, seconds=seconds)
        return found[0]

    def make_playbook(self, name: str) -> str:
        made = self.ask("POST", "/playbooks/import", {"name": name, "content": ACE_TEXT})
        return str(made["id"])

    def report(self, playbook_id: str, number: int) -> Any:
        body = {
            "task_description": f"Task {number}",
            "outcome": "success",
            "notes": f"lesson: Check assumption number {number % 40} before the change.",
            "bullet_ids": ["str-00001"],
        }
        return self.ask("POST", f"/playbooks/{playbook_id}/outcomes", body)

    def pending(self, playbook_id: str) -> int:
        """Outcomes that wait or are being worked on; a large number when nobody answers."""
        found = self.try_("GET", f"/playbooks/{playbook_id}/metrics")
        if found is None:
            return 1_000_000
        jobs = found["evolutions"]
        return int(found["outcomes"]["pending"]) + int(jobs["queued"]) + int(jobs["running"])

    def is_drained(self, playbooks: list[str]) -> bool:
        return all(self.pending(each) == 0 for each in playbooks)


@contextmanager
def platform_with_model(**extra: str) -> Iterator[tuple[Platform, FakeLLM]]:
    """A platform of its own, on TEST_DATABASE_URL's server or on SQLite, and its model."""
    # What is measured begins after the start, which takes long beside other work.
    journeys.START_SECONDS = 600.0
    with FakeLLM() as llm:
        model = {"OPENAI_API_KEY": "test", "OPENAI_BASE_URL": llm.base_url}
        with running_platform(mint().token, **(QUICK | model | extra)) as platform:
            yield platform, llm


class Reporters:
    """Threads that report at a rate, each report until it is acknowledged."""

    def __init__(self, platform: Platform, playbooks: list[str], *, per_second: float) -> None:
        self.platform, self.playbooks = platform, playbooks
        self.acknowledged: list[str] = []
        self.first_tries_refused = 0
        self.slowest = 0.0
        self._ending = threading.Event()
        count = max(1, min(8, int(per_second / 2)))
        self._pause = count / per_second
        self._threads = [
            threading.Thread(target=self._report, args=(number,)) for number in range(count)
        ]

    def __enter__(self) -> "Reporters":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _report(self, number: int) -> None:
        rest, count, due = Rest(self.platform), number, time.monotonic()
        while not self._ending.is_set():
            began = time.monotonic()
            answer = rest.report(self.playbooks[count % len(self.playbooks)], count)
            self.first_tries_refused += rest.refused
            rest.refused = 0
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.acknowledged.append(answer["outcome_id"])
            count += len(self._threads)
            due += self._pause
            self._ending.wait(max(0.0, due - time.monotonic()))


def processes_of(platform: Platform, word: str) -> dict[int, int]:
    """The pids with `word` in their command line, each with its parent's; not the supervisor's.

    Its own command line says what it runs, and so has every word in it.
    """
    found = {}
    mark = f"ACE_BOOTSTRAP_API_KEY={platform.key}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command, environ = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it ended while we looked
        is_supervisor = b"config.supervisor" in command
        if word.encode() in command and mark in environ and not is_supervisor:
            found[int(folder.name)] = parent
    return found


def verify(database: dict[str, str]) -> str:
    """What `manage.py verify` of that environment prints."""
    done = subprocess.run(
        [sys.executable, "manage.py", "verify"],
        env=os.environ | database,
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stdout + done.stderr).strip()[-500:]


def timed(condition: Callable[[], bool], *, seconds: float) -> float:
    """How long it took; AssertionError when it did not happen within `seconds`."""
    began = time.monotonic()
    wait_until(condition, seconds=seconds)
    return round(time.monotonic() - began, 1)
