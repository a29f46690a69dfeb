"""Renews the lease of a running job in a thread, until the job's deadline."""

import logging
import threading
from datetime import timedelta
from types import TracebackType

from django.conf import settings
from django.db import DatabaseError, connections

from core.clock import database_now
from evolution.worker.claims import Claim, FenceLost

logger = logging.getLogger(__name__)


class LeaseRenewal:
    """Renews the lease while entered; stops at the deadline or when the fence is lost.

    So a worker that hangs past the deadline loses its lease like a dead one.
    """

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease_renewal", daemon=True)
        self._renewals = max(1, int(settings.JOB_DEADLINE_SECONDS / settings.JOB_HEARTBEAT_SECONDS))

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
        for _ in range(self._renewals):
            if self._stop.wait(settings.JOB_HEARTBEAT_SECONDS) or not self._renew():
                return

    def _renew(self) -> bool:
        """False when the claim no longer holds."""
        try:
            renew_lease(self.claim)
        except FenceLost:
            return False
        except DatabaseError:
            # The database may be restarting: the lease outlives three missed renewals.
            logger.warning("evolution %s: lease renewal missed", self.claim.job_id)
        finally:
            # Jobs that wait for a model are many, and connections few.
            connections.close_all()
        return True


def renew_lease(claim: Claim) -> None:
    """Extend the lease; FenceLost when the claim no longer holds."""
    now = database_now()
    lease = timedelta(seconds=settings.JOB_LEASE_SECONDS)
    claim.touch(heartbeat_at=now, lease_expires_at=now + lease)
