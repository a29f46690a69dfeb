"""Adaptation: a playbook that is trained on samples (offline) or on a stream of them (online).

`OfflineAdapter` and `OnlineAdapter` need a Student (who answers), a Learner (the playbook), an
Environment (who says what is right) and Checkpoints. `memory.py` has all of them without Django.
"""

from evolution.engine.adaptation.datasets import (
    DatasetError,
    batches,
    kind_of,
    read_samples,
    split_samples,
)
from evolution.engine.adaptation.offline import OfflineAdapter, OfflineOptions, OfflineResult, Score
from evolution.engine.adaptation.online import OnlineAdapter, OnlineOptions, OnlineResult
from evolution.engine.adaptation.protocols import Learned, PlaybookSnapshot, Point, Progress

__all__ = [
    "OfflineResult",
    "DatasetError",
    "PlaybookSnapshot",
    "Learned",
    "OfflineAdapter",
    "OfflineOptions",
    "OnlineAdapter",
    "OnlineOptions",
    "Point",
    "Progress",
    "Score",
    "OnlineResult",
    "batches",
    "kind_of",
    "read_samples",
    "split_samples",
]
