"""Model prices that the operator sets; they override the public price list."""

from typing import ClassVar

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q

from core.models import BaseModel


class PriceOverride(BaseModel):
    """The price of a model in US dollars per million tokens."""

    model = models.CharField(
        max_length=100,
        help_text="model name as shown in usage; * matches any characters: gpt-4o-mini*",
    )
    base_url = models.CharField(
        "base URL",
        max_length=200,
        blank=True,
        help_text="only calls to URLs with this prefix; empty: every URL",
    )
    input_usd = models.DecimalField("input, US$", max_digits=14, decimal_places=6)
    cached_usd = models.DecimalField(
        "cached input, US$",
        max_digits=14,
        decimal_places=6,
        null=True,
        blank=True,
        help_text="empty: same as input",
    )
    output_usd = models.DecimalField("output, US$", max_digits=14, decimal_places=6)
    valid_from = models.DateTimeField(null=True, blank=True, help_text="empty: no start")
    valid_until = models.DateTimeField(null=True, blank=True, help_text="empty: no end")
    note = models.CharField(max_length=200, blank=True, help_text="source of the price")
    version = models.PositiveIntegerField(default=1, editable=False)

    class Meta:
        ordering = ("model", "base_url", "-valid_from")
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(input_usd__gte=0, output_usd__gte=0)
                & (Q(cached_usd=None) | Q(cached_usd__gte=0)),
                name="price_override_not_negative",
            ),
            models.CheckConstraint(
                condition=Q(valid_from=None)
                | Q(valid_until=None)
                | Q(valid_until__gt=F("valid_from")),
                name="price_override_ends_after_start",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} at {self.base_url}" if self.base_url else self.model

    def clean(self) -> None:
        if not self.model.strip("* "):
            raise ValidationError(
                {"model": "Name a model: a price for all models would hide unknown ones."}
            )
