"""Several hosts, one PostgreSQL: `python -m tests.harness.multi_host`; some two minutes.

Each host is a web process and a worker with a data folder of its own; where root may make them, in
a network namespace of its own. They share the database and the secrets, nothing else. A proxy sends
every request to the next one. Shown: each job runs once, on several hosts; limits hold together;
sign-ins and MCP work at any of them; a host that is killed is missed by nobody for long.
"""

import collections
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import django
import httpx2

from tests.harness.network import (
    NETWORK,
    can_make_networks,
    listening,
    networks,
    relay,
    round_robin,
)
from tests.harness.platform_process import live_settings
from tests.harness.postgres import PostgresNotFound, free_port, temporary_cluster
from tests.harness.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
HOSTS, PLAYBOOKS, EACH, LIMIT, PARALLEL = 3, 12, 5, 100, 80
EMAIL, PASSWORD = "first@example.org", "a long first password"
TEXT = "## STRATEGIES & INSIGHTS\n[str-00001] helpful=0 harmful=0 :: Read the failing test first.\n"


@dataclass
class Host:
    """One host: how a command is run on it, where its web process is reached, what it printed."""

    number: int
    prefix: list[str]
    address: str
    folder: Path
    port: int = 0
    processes: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def start(self, env: dict[str, str]) -> None:
        self.port = free_port()
        env = env | {"ACE_DATA_DIR": str(self.folder), "ALLOWED_HOSTS": "*"}
        web = ["-m", "uvicorn", "config.asgi:application", "--log-level", "warning"]
        web += ["--host", self.address, "--port", str(self.port), "--no-access-log"]
        for name, command in (("web", web), ("worker", ["manage.py", "run_worker"])):
            with (self.folder / name).open("wb") as log:
                self.processes.append(
                    subprocess.Popen(
                        [*self.prefix, sys.executable, *command],
                        cwd=ROOT,
                        env=env,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )

    def is_ready(self) -> bool:
        try:
            return httpx2.get(f"http://{self.address}:{self.port}/readyz").status_code == 200
        except httpx2.HTTPError:
            return False

    def stop(self, number: int = signal.SIGTERM) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, number)
        for process in self.processes:
            process.wait(40)

    def claimed(self) -> int:
        """Evolutions that this host's worker took up, by its log."""
        return (self.folder / "worker").read_text().count('"evolution claimed"')


@contextmanager
def standing(url: str, folder: Path) -> Iterator[tuple[list[Host], str]]:
    """The hosts, prepared and started, and the key of the first login."""
    with ExitStack() as stack:
        hosts = list(_hosts(stack, folder))
        if hosts[0].prefix:
            port = url.rpartition(":")[2].partition("/")[0]
            into = stack.enter_context(listening(relay(("127.0.0.1", int(port))), f"{NETWORK}.1"))
            url = url.replace(f"127.0.0.1:{port}", f"{NETWORK}.1:{into}")
        env = _environment(url)
        for command in ("migrate", "load_starters", "bootstrap"):
            subprocess.run(
                [*hosts[0].prefix, sys.executable, "manage.py", command],
                cwd=ROOT,
                env=env | {"ACE_DATA_DIR": str(hosts[0].folder)},
                stdout=subprocess.DEVNULL,
                check=True,
            )
        try:
            for host in hosts:
                host.start(env)
            wait_until(lambda: all(host.is_ready() for host in hosts), seconds=120)
            yield hosts, env["ACE_BOOTSTRAP_API_KEY"]
        finally:
            for host in hosts:
                host.stop()


def _hosts(stack: ExitStack, folder: Path) -> Iterator[Host]:
    apart = can_make_networks()
    named = stack.enter_context(networks(HOSTS)) if apart else [("", "127.0.0.1")] * HOSTS
    for number, (name, address) in enumerate(named):
        own = folder / f"host{number}"
        own.mkdir()
        yield Host(number, ["ip", "netns", "exec", name] if name else [], address, own)


def _environment(url: str) -> dict[str, str]:
    names = ("SECRET_KEY", "JWT_SECRET_KEY", "FIELD_ENCRYPTION_KEYS", "ACE_BOOTSTRAP_API_KEY")
    return {name: secrets.token_urlsafe(36) for name in names} | {
        "PATH": os.environ["PATH"],
        "DATABASE_URL": url,
        "HTTPS": "false",
        "STAFF_SECOND_FACTOR": "false",
        "ACE_BOOTSTRAP_EMAIL": EMAIL,
        "ACE_BOOTSTRAP_PASSWORD": PASSWORD,
        "EVOLUTION_OUTCOME_THRESHOLD": str(EACH),
        "RATE_LIMITS": f"report_outcome={LIMIT}/h,report_outcome_over=0/h",
        "EVOLUTIONS_PER_OWNER": "100",
        **live_settings(JOB_LEASE_SECONDS=8, JOB_HEARTBEAT_SECONDS=2),
    }


class Rest:
    """The REST door through the proxy, a connection for each request."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.headers = f"{url}/api/v1", {"Authorization": f"Bearer {token}"}
        self.busy = 0

    def send(self, method: str, path: str, body: Any = None) -> httpx2.Response:
        """The answer; a 503 is asked again under the same key, as the door says to."""
        headers = self.headers | {"Idempotency-Key": secrets.token_hex(16)}
        for _ in range(5):
            with httpx2.Client(headers=headers, timeout=60, trust_env=False) as client:
                answer = client.request(method, self.url + path, json=body)
            if answer.status_code != 503:
                break
            self.busy += 1
        return answer

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.send(method, path, body)
        assert answer.status_code < 300, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    def report(self, playbook: str, number: int) -> int:
        body = {"task_description": f"Task {number}", "outcome": "failure"}
        body["notes"] = f"lesson: Check assumption number {number} before the change."
        return self.send("POST", f"/playbooks/{playbook}/outcomes", body).status_code


def show(rest: Rest, hosts: list[Host], seen: list[int], key: str) -> dict[str, Any]:
    """What was seen; an AssertionError names what did not hold."""
    books = [
        rest.ask("POST", "/playbooks/import", {"name": f"Book {n}", "content": TEXT})["id"]
        for n in range(PLAYBOOKS)
    ]
    with ThreadPoolExecutor(8) as pool:
        first = list(pool.map(rest.report, books * EACH, range(PLAYBOOKS * EACH)))
        assert set(first) == {201}, collections.Counter(first)
    jobs = learned(rest, books)
    assert all(job["attempt"] == 0 for job in jobs), jobs
    claimed = {f"host {host.number}": host.claimed() for host in hosts}
    assert sum(claimed.values()) == PLAYBOOKS, claimed
    with ThreadPoolExecutor(8) as pool:
        more = list(pool.map(rest.report, [books[0]] * PARALLEL, range(PARALLEL)))
    allowed = LIMIT - PLAYBOOKS * EACH - 1  # one is `report_in_time`
    assert collections.Counter(more) == {201: allowed, 429: PARALLEL - allowed}, more
    return {
        "evolutions, each once": len(jobs),
        "taken up by": claimed,
        f"{PARALLEL} reports at once, {allowed} of them left": dict(collections.Counter(more)),
        "answers 503 that were asked again": rest.busy,
        "sign-in at one host, used at the others": sign_in(rest),
        "MCP calls": speak_mcp(rest, key, books[1]),
        "requests that each web process served": dict(sorted(collections.Counter(seen).items())),
    }


def learned(rest: Rest, books: list[str]) -> list[Any]:
    """The one finished evolution of each playbook."""

    def jobs() -> list[Any]:
        return [rest.ask("GET", f"/playbooks/{book}/evolutions")["results"] for book in books]

    wait_until(lambda: all(j and j[0]["status"] == "completed" for j in jobs()), seconds=120)
    found = jobs()
    assert [len(one) for one in found] == [1] * len(books), found
    return [one[0] for one in found]


def sign_in(rest: Rest) -> int:
    """How many requests one access token was good for, host after host."""
    tokens = rest.ask("POST", "/auth/login", {"email": EMAIL, "password": PASSWORD})
    person = Rest(rest.url.removesuffix("/api/v1"), tokens["access"])
    return len([person.ask("GET", "/auth/me") for _ in range(2 * HOSTS)])


def speak_mcp(rest: Rest, key: str, book: str) -> int:
    """Whole MCP sessions, in the newest protocol and in the one with a handshake."""
    from tests.harness.live_server import live_mcp  # noqa: PLC0415 - needs django.setup()

    calls = 0
    for mode in ("auto", "legacy"):
        agent = live_mcp(rest.url.removesuffix("/api/v1"), key, mode)
        for _ in range(HOSTS):
            assert agent.ask("list_playbooks")
            assert agent.ask("get_playbook", playbook_id=book)["content"]
            calls += 2
    return calls


def report_in_time(rest: Rest) -> str:
    """A playbook with an outcome, from before the limit of reports is used up."""
    book = str(rest.ask("POST", "/playbooks/import", {"name": "After", "content": TEXT})["id"])
    rest.ask("POST", f"/playbooks/{book}/outcomes", {"task_description": "a", "outcome": "success"})
    return book


def lose_one(rest: Rest, hosts: list[Host], book: str) -> str:
    """The last host is killed; a new evolution is run by the others."""
    hosts[-1].stop(signal.SIGKILL)
    rest.ask("POST", f"/playbooks/{book}/evolutions")
    learned(rest, [book])
    return "an evolution ran on the others"


def main() -> int:
    try:
        with temporary_cluster() as url, tempfile.TemporaryDirectory() as folder:
            return _run(url, Path(folder))
    except PostgresNotFound as error:
        print(f"There is no PostgreSQL here: {error}.")
        return 1


def _run(url: str, folder: Path) -> int:
    # For the SDK's client below, which names our errors; no row is read here.
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
    django.setup()
    with standing(url, folder) as (hosts, key):
        seen: list[int] = []
        places = [(host.address, host.port) for host in hosts]
        with listening(round_robin(places, seen), "127.0.0.1") as port:
            rest = Rest(f"http://127.0.0.1:{port}", key)
            found: dict[str, Any] = {
                "hosts": len(hosts),
                "networks of their own": bool(hosts[0].prefix),
            }
            spare = report_in_time(rest)
            found |= show(rest, hosts, seen, key)
        with listening(round_robin(places[:-1], []), "127.0.0.1") as port:
            found["a host is killed"] = lose_one(
                Rest(f"http://127.0.0.1:{port}", key), hosts, spare
            )
    env = _environment(url) | {"ACE_DATA_DIR": str(folder)}
    verify = [sys.executable, "manage.py", "verify"]
    ended = subprocess.run(verify, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    found["verify"] = (ended.stdout + ended.stderr).strip()
    print(json.dumps(found, indent=2))
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
