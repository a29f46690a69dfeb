"""`python -m benchmarks.hosts`: several hosts with one PostgreSQL, predicted, then measured.

Each host is a web process in a network namespace (root only) with a playbook of 20 KB of its own.
One host with as many clients as it will have gives the CPU of a call in web, database and client;
from those alone the calls a second of all hosts together are predicted, and then they are measured.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.mcp_load import Tally, environment_of, load, mcp_requests
from tests.harness.network import NETWORK, networks
from tests.harness.postgres import temporary_cluster

Where = dict[str, Any]
KINDS = ("read", "write")


def processor_seconds(pids: Sequence[int]) -> float:
    """CPU of these processes and of all below them, without ended threads."""
    found = 0.0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += int((task / "schedstat").read_text().split()[0]) / 1e9
            children = (task / "children").read_text().split()
            found += processor_seconds([int(child) for child in children])
    return found


@contextmanager
def host(name: str, address: str, url: str) -> Iterator[Where]:
    """A web process in the namespace; where to call it, and its process."""
    with tempfile.TemporaryDirectory(prefix="ace-host-") as folder:
        given = json.dumps({"processes": 1, "host": address})
        command = ["ip", "netns", "exec", name, sys.executable, "-m", "benchmarks.server", given]
        child = subprocess.Popen(
            command, env=environment_of(folder, url), stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        with child.stdout:
            try:
                yield json.loads(child.stdout.readline()) | {"host": address, "pid": child.pid}
            finally:
                child.terminate()
                child.wait(30)


async def call(hosts: Sequence[Where], kind: str, clients: int, seconds: float) -> Tally:
    """All clients at once, spread over the hosts, with one kind of call."""
    tallies = await asyncio.gather(
        *(
            load(where, dict.fromkeys(KINDS, mcp_requests(where)[kind]), clients, seconds)
            for where in hosts
        )
    )
    whole = Tally()
    for tally in tallies:
        whole.errors += tally.errors
        for name in KINDS:
            whole.seconds[name] += tally.seconds[name]
    return whole


def costs(
    hosts: Sequence[Where], server: int, kind: str, clients: int, seconds: float
) -> tuple[dict[str, float], float]:
    """Milliseconds of CPU of one call in web, database and client; and calls a second."""
    parts = {"web": [where["pid"] for where in hosts], "database": [server]}
    before = {name: processor_seconds(pids) for name, pids in parts.items()}
    own = time.process_time()
    tally = asyncio.run(call(hosts, kind, clients, seconds))
    spent = {name: processor_seconds(pids) - before[name] for name, pids in parts.items()}
    spent["client"] = time.process_time() - own
    count = calls_of(tally)
    return {name: 1000 * each / count for name, each in spent.items()}, count / seconds


def calls_of(tally: Tally) -> int:
    assert not tally.errors, f"{tally.errors} calls failed"
    return sum(map(len, tally.seconds.values()))


def predict(cost: dict[str, float], hosts: int, cores: int) -> float:
    """Calls a second: each web process fills a core at most, all together the machine's."""
    return min(hosts * 1000 / cost["web"], cores * 1000 / sum(cost.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--clients", type=int, default=8, help="of each host")
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    cores = os.cpu_count() or 1
    with ExitStack() as stack:
        spaces = stack.enter_context(networks(options.hosts))
        url = stack.enter_context(temporary_cluster(f"{NETWORK}.1"))
        hosts = [stack.enter_context(host(*space, url)) for space in spaces]
        server = next(
            int(stat.parent.name)
            for stat in Path("/proc").glob("[0-9]*/stat")
            if "(postgres)" in stat.read_text() and f" {os.getpid()} " in stat.read_text()
        )
        for kind in KINDS:
            asyncio.run(call(hosts, kind, 1, 2))  # warm
            # One client leaves a core idle, and a call costs a third more where none is.
            cost, _ = costs(hosts[:1], server, kind, options.clients, options.seconds)
            expected = predict(cost, options.hosts, cores)
            then, measured = costs(hosts, server, kind, options.clients, options.seconds)
            print(json.dumps({
                "call": kind, "hosts": options.hosts, "clients": options.clients * options.hosts,
                "cpu_ms_of_one_host": {name: round(ms, 2) for name, ms in cost.items()},
                "cpu_ms_of_all_hosts": {name: round(ms, 2) for name, ms in then.items()},
                "predicted_per_s": round(expected), "measured_per_s": round(measured),
                "measured_over_predicted": round(measured / expected, 2),
                "load": round(os.getloadavg()[0], 1),
            }), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
