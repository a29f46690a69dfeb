"""Results of comparing bullets, kept so that refining a playbook asks nothing twice."""

from django.db import models

from core.models import BaseModel
from playbooks.models.playbooks import PlaybookOwnedQuerySet


class DuplicateDecision(BaseModel):
    """Whether two bullets are duplicates, decided for the texts that they had then.

    An edited bullet has another hash, so its pairs are judged again. A pair of duplicates that
    a rollback brought back is not merged a second time.
    """

    playbook = models.ForeignKey(
        "playbooks.Playbook", models.CASCADE, related_name="duplicate_decisions"
    )
    first = models.CharField(max_length=16, help_text="public id of the older bullet")
    second = models.CharField(max_length=16)
    first_hash = models.CharField(max_length=64, help_text="content hash when it was judged")
    second_hash = models.CharField(max_length=64)
    is_duplicate = models.BooleanField()
    content = models.CharField(max_length=4001, blank=True, help_text="text of the merge")
    reason = models.CharField(max_length=1000, blank=True)
    judge = models.CharField(max_length=100, help_text="rules, or the model")
    # A plain id: jobs belong to the app above.
    job_id = models.UUIDField(null=True)

    objects = PlaybookOwnedQuerySet["DuplicateDecision"].as_manager()

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(
                fields=("playbook", "first", "second", "first_hash", "second_hash"),
                name="duplicate_decided_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.first} and {self.second}: {'same' if self.is_duplicate else 'not the same'}"
