"""A supervisor over shell commands:
`… -m tests.harness.supervised_commands FOLDER GRACE SILENT_AFTER COMMAND…`.

It is ready once the file `up` in FOLDER exists.
"""

import sys
from pathlib import Path

from config.supervisor import Child, Supervisor

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    children = [
        Child(
            f"child{index}",
            ["sh", "-c", f"cd {folder}; {command}"],
            restart_delay=0.05,
        )
        for index, command in enumerate(sys.argv[4:])
    ]
    supervisor = Supervisor(
        children,
        is_ready=(folder / "up").exists,
        on_ready=lambda: print("ready", flush=True),
        grace=float(sys.argv[2]),
        silent_after=float(sys.argv[3]),
    )
    sys.exit(supervisor.run())
