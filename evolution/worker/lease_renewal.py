"""Keeps the lease of a running job, from a thread of its own, until the job's deadline."""

import logging
import threading
from datetime import timedelta
from types import TracebackType

from django.conf import settings
from django.db import DatabaseError, connections

from core.clock import database_now
from evolution.worker.claims import Claim, FenceLost
from evolution.worker.worker_heartbeat import record_heartbeat

logger = logging.getLogger(__name__)


class LeaseRenewal:
    """While entered, renews the lease; stops by itself at the deadline or when the fence is gone.

    A worker whose thinking hangs past the deadline thus loses its lease like a dead one.
    """

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._beats = max(1, int(settings.JOB_DEADLINE_SECONDS / settings.JOB_HEARTBEAT_SECONDS))

    def __enter__(self) -> "LeaseRenewal":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            for _ in range(self._beats):
                if self._stop.wait(settings.JOB_HEARTBEAT_SECONDS) or not self._renew():
                    return
        finally:
            connections.close_all()

    def _renew(self) -> bool:
        """False when the job is no longer ours."""
        try:
            renew_lease(self.claim)
            record_heartbeat()
        except FenceLost:
            return False
        except DatabaseError:
            # The database may be restarting: the lease outlives three missed beats.
            connections.close_all()
            logger.warning("evolution %s: heartbeat missed", self.claim.job_id)
        return True


def renew_lease(claim: Claim) -> None:
    """The lease starts anew; FenceLost when the job is no longer ours."""
    now = database_now()
    lease = timedelta(seconds=settings.JOB_LEASE_SECONDS)
    claim.touch(heartbeat_at=now, lease_expires_at=now + lease)
