"""Checkpoints: answers a job has paid for, stored at once and reused by the next attempt."""

import hashlib
from collections.abc import Mapping

from django.db import transaction

from evolution.engine.curator import Curation
from evolution.engine.evolve import Engine
from evolution.engine.grow_refine import PairKey
from evolution.engine.merge_judge import Verdict
from evolution.engine.reflector import Reflection as Answer
from evolution.models import EvolutionJob, Reflection
from evolution.worker.claims import Claim
from playbooks.models import DuplicateDecision


class StoredCheckpoints:
    """The engine's Checkpoints, in rows that are written under the claim's fence.

    A stored curation counts only for the same outcomes, base version and configuration.
    """

    def __init__(self, claim: Claim, engine: Engine) -> None:
        self.claim, self.engine = claim, engine
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

    def verdicts(self) -> dict[PairKey, Verdict | None]:
        """Reusable verdicts on pairs; None where the job that decided has published or is unknown.

        Those of other unpublished jobs of the playbook are reused as well.
        """
        jobs = EvolutionJob.objects.filter(playbook=self.claim.playbook_id)
        unpublished = jobs.exclude(status=EvolutionJob.Status.COMPLETED)
        usable = set(unpublished.values_list("pk", flat=True))
        return {
            PairKey(row.first, row.second, row.first_hash, row.second_hash): (
                Verdict(same=row.is_duplicate, content=row.content, reason=row.reason)
                if row.job_id in usable
                else None
            )
            for row in DuplicateDecision.objects.filter(playbook=self.claim.playbook_id)
        }

    def save_verdicts(self, verdicts: Mapping[PairKey, Verdict]) -> None:
        """Store the verdicts; one that an earlier job paid for becomes this job's."""
        rows = [
            DuplicateDecision(
                playbook_id=self.claim.playbook_id,
                **key._asdict(),
                is_duplicate=verdict.same,
                content=verdict.content if verdict.same else "",
                reason=verdict.reason[:1000],
                judge=self.engine.name,
                job_id=self.claim.job_id,
            )
            for key, verdict in verdicts.items()
        ]
        with transaction.atomic():
            self.claim.lock()
            DuplicateDecision.objects.bulk_create(
                rows,
                update_conflicts=True,
                unique_fields=("playbook", *PairKey._fields),
                update_fields=("job_id",),
            )
