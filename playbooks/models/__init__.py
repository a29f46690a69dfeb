"""Rows of playbooks: bullets, versions, the review queue and the cache of comparisons."""

from playbooks.models.bullets import Bullet, DuplicateDecision, Section, Vote
from playbooks.models.playbooks import (
    Playbook,
    PlaybookOwnedQuerySet,
    PlaybookQuerySet,
    ReviewPolicy,
    TrialPolicy,
)
from playbooks.models.trials import Arm, Trial
from playbooks.models.versions import Delta, ReviewItem, Version

__all__ = [
    "Arm",
    "Bullet",
    "Delta",
    "DuplicateDecision",
    "Playbook",
    "PlaybookOwnedQuerySet",
    "PlaybookQuerySet",
    "ReviewItem",
    "ReviewPolicy",
    "Section",
    "Trial",
    "TrialPolicy",
    "Version",
    "Vote",
]
