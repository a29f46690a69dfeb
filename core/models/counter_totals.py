"""What counters of deleted rows had reached, so that metrics never fall."""

from django.db import models


class CounterTotals(models.Model):
    """One row for each metric family; see config/observability/monotonic_counters.py."""

    name = models.CharField(max_length=100, primary_key=True)
    counted = models.JSONField(default=dict, help_text="a sample → rows at the last scrape")
    removed = models.JSONField(default=dict, help_text="a sample → rows that were deleted since")

    def __str__(self) -> str:
        return self.name
