"""The supervisor process that `manage.py run` and `manage.py run_worker` become.

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
    """The commands to run, and the address of the health check; without one it is ready at once."""

    commands: dict[str, list[str]]
    host: str = ""
    port: int = 0

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

    def is_ready() -> bool:
        return not config.port or is_serving(config.host, config.port)

    def on_ready() -> None:
        if config.port:
            print(f"ready {config.address}", flush=True)

    children = [
        Child(name, command, has_pulse=name != "web") for name, command in config.commands.items()
    ]
    return Supervisor(children, is_ready=is_ready, on_ready=on_ready)


if __name__ == "__main__":
    sys.exit(build_supervisor(SupervisorConfig(**json.loads(sys.argv[1]))).run())
