"""Model prices that the operator sets; they override the public price list."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import ClassVar

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q

from billing.models.usage import UsageRecord
from core.models import BaseModel

BEGINNING_OF_TIME = datetime.min.replace(tzinfo=UTC)
MILLION = Decimal(1_000_000)


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

    @property
    def source(self) -> str:
        """How usage records name this version of the price."""
        return f"override {self.pk}/{self.version}"

    def fits(self, model: str, api_url: str, at: datetime) -> bool:
        """Whether it applies to a call of this model at this URL and time."""
        return (
            _matches_pattern(model.lower(), self.model.strip().lower())
            and _is_under_base_url(api_url, self.base_url)
            and (self.valid_from is None or self.valid_from <= at)
            and (self.valid_until is None or at < self.valid_until)
        )

    @property
    def rank(self) -> tuple[int, bool, int, datetime, str]:
        """The greatest applies: longest URL, full name, longest pattern, latest start."""
        letters = len(self.model.replace("*", ""))
        since = self.valid_from or BEGINNING_OF_TIME
        return len(self.base_url), "*" not in self.model, letters, since, self.source

    def cost_of(self, call: UsageRecord) -> Decimal:
        """The cost of the call in US dollars; its cached tokens are part of the prompt."""
        cached = min(call.cached_tokens, call.prompt_tokens)
        cached_usd = self.input_usd if self.cached_usd is None else self.cached_usd
        spent = (call.prompt_tokens - cached) * self.input_usd + cached * cached_usd
        return (spent + call.completion_tokens * self.output_usd) / MILLION


def _matches_pattern(name: str, pattern: str) -> bool:
    """Whether the name matches a pattern with *; every other character means itself.

    In time that grows with their lengths: each * matches as little as it can, once.
    """
    return fnmatchcase(name, re.sub(r"([\[?])", r"[\1]", pattern))


def _is_under_base_url(api_url: str, base_url: str) -> bool:
    """Whether the URL has this prefix; https://a.example is no prefix of https://a.example.org."""
    base, url = base_url.strip().rstrip("/").lower(), api_url.rstrip("/").lower()
    return not base or url == base or url.startswith(f"{base}/")
