"""Reports that wait for the server: files that only their user can read, sent until accepted."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

from ace.api import Api, Refused
from ace.settings import write_private

KEPT_SECONDS = 14 * 24 * 3600


class Outbox:
    """The waiting reports below one folder; each has an idempotency key, which names its file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, playbook: str, outcome: dict[str, Any]) -> None:
        """Keep a report for sending, in place of an earlier one with its idempotency key."""
        name = re.sub(r"[^\w-]", "", str(outcome["idempotency_key"]))[:150]
        write_private(self.folder / f"{name}.json", json.dumps([playbook, outcome]))

    def waiting(self) -> list[Path]:
        return sorted(self.folder.glob("*.json"))

    def send(self, api: Api) -> list[str]:
        """Send what waits; the messages of reports that the server will never accept.

        Raises what stopped it: the rest is sent another time, and what was sent twice counts once.
        """
        lost = []
        for path in self.waiting():
            try:
                playbook, outcome = json.loads(path.read_text())
                api.report(playbook, outcome)
            except (ValueError, FileNotFoundError):
                pass  # half a file of a full disk, or sent by another process
            except Refused as refused:
                if not refused.is_final and time.time() - path.stat().st_mtime < KEPT_SECONDS:
                    raise
                if refused.code != "idempotency_conflict":  # it is there, in other words
                    lost.append(str(refused))
            path.unlink(missing_ok=True)
        return lost
