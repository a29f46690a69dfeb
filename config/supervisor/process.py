"""The supervisor as a process of its own, which `manage.py run` becomes once all is prepared.

Nothing here imports Django: who only waits for signals need not keep 90 MB for it.
"""

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

from config.observability.healthcheck import connect_host, is_serving
from config.supervisor.supervisor import Child, Supervisor


@dataclass(frozen=True)
class SupervisorConfig:
    """What to run, and where it is asked whether it serves: `name` is a host that Django allows."""

    commands: dict[str, list[str]]
    host: str
    port: int
    name: str

    @property
    def address(self) -> str:
        host = connect_host(self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


def exec_supervisor(plan: SupervisorConfig) -> NoReturn:
    """This process, under the same pid, is the supervisor of the plan from now on."""
    os.chdir(Path(__file__).parents[2])
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    again = [sys.executable, "-m", "config.supervisor.process", json.dumps(asdict(plan))]
    os.execv(sys.executable, again)  # noqa: S606 - our own file, no shell


def build_supervisor(plan: SupervisorConfig) -> Supervisor:
    """It says `ready` and the address once the platform serves."""
    return Supervisor(
        [Child(name, command) for name, command in plan.commands.items()],
        is_ready=lambda: is_serving(plan.host, plan.port, name=plan.name),
        on_ready=lambda: print(f"ready {plan.address}", flush=True),
    )


if __name__ == "__main__":
    sys.exit(build_supervisor(SupervisorConfig(**json.loads(sys.argv[1]))).run())
