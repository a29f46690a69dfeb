"""Embeddings of a playbook's texts: made once for each text, stored under its hash."""

import logging
from array import array
from collections.abc import Sequence
from typing import Protocol

from django.db import transaction

from evolution.engine.grow_refine import ALIKE, Find, by_meaning, by_spelling
from evolution.engine.llm import AnswerError, CredentialError
from evolution.engine.merge_judge import Pair
from evolution.engine.patience import patiently
from evolution.worker.claims import Claim
from playbooks.document import Document, content_hash
from playbooks.models import TextVector

AT_ONCE = 32
"""Texts in one call of the model."""
logger = logging.getLogger(__name__)


class Embedder(Protocol):
    """Who makes vectors of texts."""

    model: str

    def embed(self, texts: Sequence[str]) -> list[list[float]]: ...


def by_stored_meaning(claim: Claim, embedder: Embedder) -> Find:
    """Finds pairs by their embeddings; by spelling when that model is not to be had.

    Raises TransientError, for the job to wait, and FenceLost.
    """

    def find(document: Document) -> Sequence[Pair]:
        try:
            vectors = vectors_of(claim, embedder, document)
        except (AnswerError, CredentialError) as error:
            logger.warning("evolution %s: no embeddings: %s", claim.job_id, error.code)
            return by_spelling(ALIKE)(document)
        return by_meaning(vectors)(document)

    return find


def vectors_of(claim: Claim, embedder: Embedder, document: Document) -> dict[str, list[float]]:
    """The vectors of the document's texts by content hash; each batch is stored as it is paid."""
    texts = {content_hash(bullet.content): bullet.content for bullet in document.bullets}
    rows = TextVector.objects.filter(playbook=claim.playbook_id, model=embedder.model)
    known = {row.content_hash: row.vector for row in rows if row.content_hash in texts}
    missing = [key for key in texts if key not in known]
    for start in range(0, len(missing), AT_ONCE):
        keys = missing[start : start + AT_ONCE]
        vectors = _embed(embedder, [texts[key] for key in keys])
        fresh = [_row(claim, embedder.model, *pair) for pair in zip(keys, vectors, strict=True)]
        with transaction.atomic():
            claim.lock()
            TextVector.objects.bulk_create(fresh, ignore_conflicts=True)
        # As stored, not as sent: a retry has to find the same pairs.
        known |= {row.content_hash: row.vector for row in fresh}
    return known


def _embed(embedder: Embedder, texts: list[str]) -> list[list[float]]:
    return patiently(lambda: embedder.embed(texts))


def _row(claim: Claim, model: str, key: str, vector: list[float]) -> TextVector:
    packed = array("f", vector).tobytes()
    return TextVector(
        playbook_id=claim.playbook_id, model=model[:100], content_hash=key, packed=packed
    )
