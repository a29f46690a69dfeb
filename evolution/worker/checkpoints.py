"""Checkpoints: answers a job has paid for, stored at once and reused by the next attempt."""

import hashlib

from django.db import transaction

from evolution.engine.curator import Curation
from evolution.engine.evolve import Engine
from evolution.engine.reflector import Reflection as Answer
from evolution.models import EvolutionJob, Reflection
from evolution.worker.claims import Claim


class StoredCheckpoints:
    """The engine's Checkpoints, written as Reflection rows and the job's `curation`.

    A stored curation counts only for the same outcomes, base version and configuration.
    """

    def __init__(self, claim: Claim, engine: Engine) -> None:
        self.claim = claim
        parts = (claim.outcome_set_hash, str(claim.base_version_id), engine.config_hash)
        self.curation_key = hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def reflections(self) -> dict[str, Answer]:
        """The stored answers by outcome id."""
        rows = Reflection.objects.filter(
            job=self.claim.job_id, outcome__job=self.claim.job_id
        ).values_list("outcome_id", "content")
        return {str(outcome): Answer.model_validate(content) for outcome, content in rows}

    def save_reflection(self, outcome_id: str, reflection: Answer, tokens: int) -> None:
        """Store one answer in the transaction that checks the fence."""
        with transaction.atomic():
            self.claim.touch(phase=EvolutionJob.Phase.REFLECT)
            Reflection.objects.create(
                job_id=self.claim.job_id,
                outcome_id=outcome_id,
                content=reflection.model_dump(mode="json"),
                tokens=tokens,
            )

    def curation(self) -> Curation | None:
        """The stored answer, if its inputs are the same."""
        self.claim.touch(phase=EvolutionJob.Phase.CURATE)
        job = EvolutionJob.objects.get(pk=self.claim.job_id)
        if job.curation is None or job.curation_key != self.curation_key:
            return None
        return Curation.model_validate(job.curation)

    def save_curation(self, curation: Curation) -> None:
        """Store the Curator's answer with the hash of its inputs."""
        self.claim.touch(
            curation=curation.model_dump(mode="json"),
            curation_key=self.curation_key,
            phase=EvolutionJob.Phase.PUBLISH,
        )
