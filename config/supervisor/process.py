"""The supervisor process that `manage.py run` becomes once the database is prepared.

Nothing here imports Django, which would keep 90 MB in a process that only waits for signals.
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
    """The commands to run, and the address of the health check."""

    commands: dict[str, list[str]]
    host: str
    port: int

    @property
    def address(self) -> str:
        host = connect_host(self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


def exec_supervisor(config: SupervisorConfig) -> NoReturn:
    """Replace this process, keeping its pid, with the supervisor."""
    os.chdir(Path(__file__).parents[2])
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    again = [sys.executable, "-m", "config.supervisor.process", json.dumps(asdict(config))]
    os.execv(sys.executable, again)  # noqa: S606 - our own file, no shell


def build_supervisor(config: SupervisorConfig) -> Supervisor:
    """A supervisor that prints `ready` and the address once the platform is healthy."""
    return Supervisor(
        [Child(name, command) for name, command in config.commands.items()],
        is_ready=lambda: is_serving(config.host, config.port),
        on_ready=lambda: print(f"ready {config.address}", flush=True),
    )


if __name__ == "__main__":
    sys.exit(build_supervisor(SupervisorConfig(**json.loads(sys.argv[1]))).run())
