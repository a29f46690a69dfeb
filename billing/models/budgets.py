"""Budgets that users set for themselves."""

from typing import ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from accounts.hooks import hooks
from accounts.models import User
from core.models import BaseModel
from core.sql.querysets import OwnedQuerySet


class BudgetQuerySet(OwnedQuerySet["Budget"]):
    owner_path = "user"
    playbook_path = "playbook_id"


class Budget(BaseModel):
    """A daily or monthly amount, or both, for a user's account or for one of their playbooks.

    It counts every call of the account, with any key. The operator's CostCap applies as well.
    """

    user = models.ForeignKey(User, models.CASCADE, related_name="budgets")
    # A plain id: playbooks live above billing. Empty: for the whole account.
    playbook_id = models.UUIDField(null=True, blank=True, unique=True)
    usd_per_day = models.DecimalField(max_digits=10, decimal_places=2, null=True, blank=True)
    usd_per_month = models.DecimalField(max_digits=10, decimal_places=2, null=True, blank=True)
    warn_percent = models.PositiveSmallIntegerField(
        default=80, validators=[MinValueValidator(1), MaxValueValidator(100)]
    )
    stops = models.BooleanField(default=True, help_text="off: warn only")
    # The day and month already warned about: one email for each.
    warned_day = models.DateField(null=True, editable=False)
    warned_month = models.DateField(null=True, editable=False)

    objects = BudgetQuerySet.as_manager()

    class Meta:
        ordering = ("playbook_id",)
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=("user",), condition=Q(playbook_id=None), name="unique_account_budget"
            ),
            models.CheckConstraint(
                condition=Q(usd_per_day__isnull=False) | Q(usd_per_month__isnull=False),
                name="budget_has_an_amount",
            ),
            models.CheckConstraint(
                condition=(Q(usd_per_day=None) | Q(usd_per_day__gt=0))
                & (Q(usd_per_month=None) | Q(usd_per_month__gt=0))
                & Q(warn_percent__gte=1, warn_percent__lte=100),
                name="budget_amounts_valid",
            ),
        ]

    def __str__(self) -> str:
        return f"budget of playbook {self.playbook_id}" if self.playbook_id else "account budget"

    def clean(self) -> None:
        """Require a playbook of the user: another's would reveal its cost and block its budget."""
        user = User.objects.filter(pk=self.user_id).first()
        if self.playbook_id and user and not hooks.playbook_names(user, ids=[self.playbook_id]):
            raise ValidationError({"playbook_id": "This user has no such playbook."})
