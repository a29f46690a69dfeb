"""Embeddings of a playbook's texts: made once for each text and stored by its hash."""

import logging
from array import array
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from django.db import transaction

from evolution.engine.grow_refine import FindPairs, find_alike, find_by_embedding
from evolution.engine.llm import AnswerError, CredentialError
from evolution.engine.merge_judge import Pair
from evolution.engine.retry import call_with_retry
from evolution.worker.claims import Claim
from playbooks.document.text import Document, content_hash
from playbooks.models import TextEmbedding

BATCH_SIZE = 32
"""Texts in one call of the model."""
logger = logging.getLogger(__name__)


class Embedder(Protocol):
    """A model that embeds texts."""

    def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]: ...


def find_by_stored_embeddings(claim: Claim, embedder: Embedder, model: str) -> FindPairs:
    """Finds pairs by embedding; by letters and words when the embedding model fails.

    Raises TransientError, for the job to wait, and FenceLost.
    """

    def find(document: Document) -> Sequence[Pair]:
        try:
            vectors = embeddings_of(claim, embedder, model, document)
        except (AnswerError, CredentialError) as error:
            logger.warning("evolution %s: no embeddings: %s", claim.job_id, error.code)
            return find_alike(document)
        return find_by_embedding(vectors)(document)

    return find


def embeddings_of(
    claim: Claim, embedder: Embedder, model: str, document: Document
) -> dict[str, list[float]]:
    """The vectors of the document's texts by content hash; each batch is stored as it is paid."""
    texts = {content_hash(bullet.content): bullet.content for bullet in document.bullets}
    rows = TextEmbedding.objects.filter(playbook=claim.playbook_id, model=model)
    known = {row.content_hash: row.vector for row in rows if row.content_hash in texts}
    missing = [key for key in texts if key not in known]
    for start in range(0, len(missing), BATCH_SIZE):
        keys = missing[start : start + BATCH_SIZE]
        batch = [texts[key] for key in keys]
        vectors = call_with_retry(partial(embedder.embed, model, batch))
        fresh = [_row(claim, model, *pair) for pair in zip(keys, vectors, strict=True)]
        with transaction.atomic():
            claim.lock()
            TextEmbedding.objects.bulk_create(fresh, ignore_conflicts=True)
        # As stored, not as sent: a retry has to find the same pairs.
        known |= {row.content_hash: row.vector for row in fresh}
    return known


def _row(claim: Claim, model: str, key: str, vector: list[float]) -> TextEmbedding:
    packed = array("f", vector).tobytes()
    return TextEmbedding(
        playbook_id=claim.playbook_id, model=model[:100], content_hash=key, vector_bytes=packed
    )
