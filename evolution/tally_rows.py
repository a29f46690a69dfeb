"""How many outcomes a playbook has: kept beside it, because lists show it for every row."""

from django.db import models
from django.db.models import F, Q

from accounts.models import Row
from playbooks.models import Playbook


class OutcomeTally(Row):
    """What agents and people reported on a playbook; a training's own attempts are not reports.

    A row of its own, not columns of the playbook: whoever saves a playbook that was read earlier
    would write an old number back.
    """

    playbook = models.OneToOneField(Playbook, models.CASCADE, related_name="tally")
    reported = models.PositiveIntegerField(default=0)
    succeeded = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(succeeded__lte=F("reported")),
                name="tally_wins_within_reports",
            ),
        )

    def __str__(self) -> str:
        return f"{self.reported} outcomes of {self.playbook_id}"

    @classmethod
    def add(cls, playbook: Playbook, *, succeeded: bool) -> None:
        """One report more; call it in the report's transaction, with the playbook locked."""
        won = int(succeeded)
        known = cls.objects.filter(playbook=playbook)
        if not known.update(reported=F("reported") + 1, succeeded=F("succeeded") + won):
            cls.objects.create(playbook=playbook, reported=1, succeeded=won)
