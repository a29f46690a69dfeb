"""Adaptation: a playbook that is trained on samples (offline) or on a stream of them (online).

`OfflineAdapter` and `OnlineAdapter` need a Student (who answers), a Learner (the playbook), an
Environment (who says what is right) and Checkpoints. `memory.py` has all of them without Django.
"""

from evolution.engine.adaptation.offline import Adapted, OfflineAdapter, OfflineOptions, Score
from evolution.engine.adaptation.online import OnlineAdapter, OnlineOptions, Streamed
from evolution.engine.adaptation.parts import Edition, Learned, Point, Progress
from evolution.engine.adaptation.samples import (
    DatasetError,
    batches,
    kind_of,
    read_samples,
    split_samples,
)

__all__ = [
    "Adapted",
    "DatasetError",
    "Edition",
    "Learned",
    "OfflineAdapter",
    "OfflineOptions",
    "OnlineAdapter",
    "OnlineOptions",
    "Point",
    "Progress",
    "Score",
    "Streamed",
    "batches",
    "kind_of",
    "read_samples",
    "split_samples",
]
