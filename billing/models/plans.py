"""Plans: what they include, how long they keep texts, and their prices at Stripe.

No model of billing has a foreign key to dj-stripe's tables: they are not installed while billing
is off.
"""

from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import Any, Self

from django.db import models
from django.db.models import Q

from billing.money import OVERAGE, Amount, is_metered
from core.models import BaseModel

INCLUDED = {
    "monthly_evolutions": ("evolutions", "month"),
    "monthly_tokens": ("tokens", "month"),
    "monthly_usd": ("usd", "month"),
    "max_playbooks": ("playbooks", "any"),
    "max_keys": ("keys", "any"),
    "stored_playbooks": ("stored_playbooks", "any"),
    "stored_mb": ("stored_mb", "any"),
    "reports_per_hour": ("reports", "hour"),
}
"""Names of a plan's limits, with the unit and window of their rows."""


class PlanQuerySet(models.QuerySet["Plan"]):
    def paid(self) -> Self:
        """The active plans with a price."""
        return self.filter(is_active=True).exclude(price_lookup_key="")


class Plan(BaseModel):
    """What a user may use (its Limit rows), and the lookup key of its price at Stripe."""

    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=60)
    price_lookup_key = models.CharField(
        max_length=100, blank=True, help_text="lookup key of the Stripe price; empty: free"
    )
    display_price = models.CharField(
        max_length=60, blank=True, help_text="shown until billing_setup has read Stripe's price"
    )
    stripe_prices = models.JSONField(
        default=dict,
        db_default={},
        editable=False,
        help_text="every price of the plan by id, old ones too",
    )
    stripe_product_id = models.CharField(max_length=255, default="", db_default="", editable=False)
    trial_days = models.PositiveSmallIntegerField(default=0)
    trial_percent = models.PositiveSmallIntegerField(
        default=20, db_default=20, help_text="of the monthly limits that a trial may use"
    )
    retention_days = models.PositiveIntegerField(
        null=True, blank=True, help_text="for traces and notes; empty: the server's setting"
    )
    is_default = models.BooleanField(default=False, help_text="for accounts without another plan")
    is_active = models.BooleanField(default=True, help_text="customers can choose it")
    position = models.PositiveSmallIntegerField(default=0)

    objects = PlanQuerySet.as_manager()

    class Meta:
        ordering = ("position", "slug")
        constraints = (
            models.UniqueConstraint(
                fields=("is_default",), condition=Q(is_default=True), name="unique_default_plan"
            ),
            models.UniqueConstraint(
                fields=("price_lookup_key",),
                condition=~Q(price_lookup_key=""),
                name="unique_plan_price_lookup_key",
            ),
            models.CheckConstraint(
                condition=Q(is_default=False) | Q(price_lookup_key="", is_active=True),
                name="default_plan_is_free",
            ),
            models.CheckConstraint(
                condition=Q(retention_days=None) | Q(retention_days__gt=0),
                name="plan_retention_positive",
            ),
        )

    def __str__(self) -> str:
        return self.name

    @cached_property
    def included(self) -> dict[str, Decimal | None]:
        """The plan's limits by the names in INCLUDED; None: unlimited."""
        rows = {(row.unit, row.window): row.amount for row in self.limits.all()}
        return {name: rows.get(key) for name, key in INCLUDED.items()}

    def is_sold_as(self, price: Mapping[str, Any]) -> bool:
        """Whether a price at Stripe is one of this plan's, old ones and ones made by hand too."""
        product = price.get("product") or ""
        product = product["id"] if isinstance(product, Mapping) else product
        key = price.get("lookup_key") or ""
        return not is_metered(price) and (
            price.get("id") in self.stripe_prices
            or product in {self.stripe_product_id or f"ace_{self.slug}", f"ace_{self.slug}"}
            or bool(self.price_lookup_key and key in self.lookup_keys.values())
        )

    @property
    def lookup_keys(self) -> dict[str, str]:
        """The lookup keys of the monthly and the yearly price, and of calls beyond the plan."""
        key = self.price_lookup_key
        return {"month": key, "year": f"{key}_year", OVERAGE: f"{key}_{OVERAGE}"}

    @property
    def sold_amounts(self) -> dict[str, Amount]:
        """What Stripe charges now, by interval or as OVERAGE, as last read from it."""
        prices = (row for row in self.stripe_prices.values() if row["is_sold"])
        amounts = (Amount(row["units"], row["currency"], row["interval"]) for row in prices)
        return {amount.interval: amount for amount in amounts}

    @property
    def overage_price(self) -> str:
        """What one US$ of model calls beyond the plan costs, in words; empty: not offered."""
        return str(self.sold_amounts.get(OVERAGE, ""))

    @property
    def price(self) -> str:
        """Stripe's price in words, "$29 a month or $290 a year"; else what staff typed."""
        amounts = (amount for each, amount in self.sold_amounts.items() if each != OVERAGE)
        return " or ".join(map(str, amounts)) or self.display_price
