"""One evolution: claim → think → publish. The task body of the queue lives here.

The claim and the publication are short transactions; no transaction is open while a model
thinks. Every write carries the fence of the claim, so a worker that lost its lease writes nothing.
"""

import logging

from accounts.errors import AceError
from evolution.engine.evolve import NothingReflected
from evolution.engine.llm import AnswerError, CredentialError, TransientError
from evolution.worker.beats import beat
from evolution.worker.claims import Claim, FenceLost, claim_job
from evolution.worker.endings import fail_job, put_back
from evolution.worker.heartbeat import Heartbeat
from evolution.worker.publication import publish
from evolution.worker.sweep import sweep
from evolution.worker.thinking import think

__all__ = ["beat", "run_evolution", "sweep"]

logger = logging.getLogger(__name__)


def run_evolution(job_id: str) -> str:
    """Run one job to its end or put it back; never raises, and is harmless when repeated.

    Returns a word for the queue's log: what became of this call.
    """
    claim = claim_job(job_id)
    if claim is None:
        return "nothing to claim"
    try:
        with Heartbeat(claim):
            evolved = think(claim)
            publish(claim, evolved)
    except FenceLost:
        return "overtaken"
    except Exception as error:  # noqa: BLE001 - the task's edge: every error becomes a job state
        return _end(claim, error)
    return "completed"


def _end(claim: Claim, error: Exception) -> str:
    """Waiting for what passes by itself, failing for what a person has to mend."""
    try:
        return _judge(claim, error)
    except FenceLost:
        return "overtaken"


def _judge(claim: Claim, error: Exception) -> str:
    if isinstance(error, TransientError):
        return put_back(
            claim,
            reason=error.message,
            retry_after=error.retry_after,
            costs_attempt=error.costs_attempt,
        )
    if isinstance(error, NothingReflected):
        code, message = error.code, error.message
        return fail_job(claim, code=code, message=message, set_aside=error.set_aside)
    if isinstance(error, CredentialError | AnswerError | AceError):
        return fail_job(claim, code=error.code, message=error.message)
    # The type only: the text of an unknown error may quote a playbook or an outcome.
    logger.error("evolution %s: %s", claim.job_id, type(error).__name__)
    return put_back(claim, reason=f"internal error ({type(error).__name__})")
