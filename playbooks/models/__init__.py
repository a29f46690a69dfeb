from playbooks.models.bullets import Bullet, BulletQuerySet, Section, SectionQuerySet, Vote
from playbooks.models.playbooks import (
    Playbook,
    PlaybookOwnedQuerySet,
    PlaybookQuerySet,
    ReviewPolicy,
)
from playbooks.models.reviews import ReviewItem, ReviewItemQuerySet
from playbooks.models.similarity_cache import (
    DuplicateDecision,
    DuplicateDecisionQuerySet,
    TextEmbedding,
    TextEmbeddingQuerySet,
)
from playbooks.models.versions import Delta, DeltaQuerySet, Version, VersionQuerySet

__all__ = [
    "Bullet",
    "BulletQuerySet",
    "Delta",
    "DeltaQuerySet",
    "DuplicateDecisionQuerySet",
    "ReviewItem",
    "DuplicateDecision",
    "Playbook",
    "PlaybookOwnedQuerySet",
    "PlaybookQuerySet",
    "ReviewItemQuerySet",
    "ReviewPolicy",
    "Section",
    "SectionQuerySet",
    "TextEmbeddingQuerySet",
    "TextEmbedding",
    "Version",
    "VersionQuerySet",
    "Vote",
]
