"""Limits: one table of what the server, an account or a playbook may use and cost."""

from typing import ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from accounts.hooks import hooks
from accounts.models import User
from billing.models.plans import Plan
from core.models import BaseModel
from core.sql.querysets import OwnedQuerySet


class LimitQuerySet(OwnedQuerySet["Limit"]):
    owner_path = "user"
    playbook_path = "playbook_id"


class Limit(BaseModel):
    """How much of a unit may be used in a window, and by whom.

    Of the operator's rows one for a single account or playbook goes before the plan's, and the
    plan's before the one for all. Owners limit what they spend themselves: their rows apply too.
    """

    class SetBy(models.TextChoices):
        OPERATOR = "operator"
        OWNER = "owner"
        PLAN = "plan"

    class Scope(models.TextChoices):
        SERVER = "server", "the whole server"
        ACCOUNT = "account", "each account"
        PLAYBOOK = "playbook", "each playbook"

    class Unit(models.TextChoices):
        USD = "usd", "US$ of model calls"
        TOKENS = "tokens", "tokens"
        EVOLUTIONS = "evolutions", "evolutions"
        PLAYBOOKS = "playbooks", "active playbooks"
        KEYS = "keys", "API keys"
        STORED_PLAYBOOKS = "stored_playbooks", "stored playbooks"
        STORED_VERSIONS = "stored_versions", "stored versions"
        STORED_MB = "stored_mb", "stored MB"
        REPORTS = "reports", "reports that may start evolutions"

    class Window(models.TextChoices):
        HOUR = "hour", "an hour"
        DAY = "day", "a day"
        MONTH = "month", "a month"
        ANY = "any", "at any time"

    set_by = models.CharField(max_length=10, choices=SetBy, default=SetBy.OPERATOR)
    scope = models.CharField(max_length=10, choices=Scope, default=Scope.ACCOUNT)
    plan = models.ForeignKey(Plan, models.CASCADE, null=True, blank=True, related_name="limits")
    user = models.ForeignKey(User, models.CASCADE, null=True, blank=True, related_name="limits")
    # A plain id: playbooks live above billing.
    playbook_id = models.UUIDField(null=True, blank=True)
    unit = models.CharField(max_length=20, choices=Unit)
    window = models.CharField(max_length=10, choices=Window, default=Window.MONTH)
    amount = models.DecimalField(
        max_digits=16, decimal_places=2, null=True, blank=True, help_text="empty: no limit"
    )
    until = models.DateTimeField(null=True, blank=True, help_text="empty: for good")
    stops = models.BooleanField(default=True, help_text="off: warn only")
    warn_percent = models.PositiveSmallIntegerField(
        default=80, validators=[MinValueValidator(1), MaxValueValidator(100)]
    )
    warned_on = models.DateField(null=True, editable=False, help_text="day of the last warning")

    objects = LimitQuerySet.as_manager()

    class Meta:
        ordering = ("unit", "window")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=("plan", "unit", "window"),
                condition=Q(set_by="plan"),
                name="unique_limit_of_plan",
            ),
            models.UniqueConstraint(
                fields=("set_by", "user", "unit", "window"),
                condition=Q(user__isnull=False, playbook_id=None),
                name="unique_limit_of_account",
            ),
            models.UniqueConstraint(
                fields=("set_by", "playbook_id", "unit", "window"),
                condition=Q(playbook_id__isnull=False),
                name="unique_limit_of_playbook",
            ),
            models.UniqueConstraint(
                fields=("scope", "unit", "window"),
                condition=Q(set_by="operator", user=None, playbook_id=None),
                name="unique_limit_of_all",
            ),
            models.CheckConstraint(
                condition=Q(set_by="plan", plan__isnull=False, scope="account", user=None)
                | (~Q(set_by="plan") & Q(plan=None)),
                name="limit_of_plan_has_plan",
            ),
            models.CheckConstraint(
                condition=~Q(set_by="owner") | Q(user__isnull=False, amount__gt=0),
                name="limit_of_owner_has_owner_and_amount",
            ),
            models.CheckConstraint(
                condition=Q(playbook_id=None) | Q(scope="playbook"),
                name="limit_of_playbook_has_its_scope",
            ),
            models.CheckConstraint(
                condition=(Q(amount=None) | Q(amount__gte=0))
                & Q(warn_percent__gte=1, warn_percent__lte=100),
                name="limit_amounts_valid",
            ),
        ]

    def __str__(self) -> str:
        amount = "no limit" if self.amount is None else f"{self.amount.normalize():,f}"
        return f"{amount} {self.get_unit_display()} {self.get_window_display()}"

    @property
    def is_for_all(self) -> bool:
        """True for a row that is of no single account, playbook or plan."""
        return self.user_id is None and self.playbook_id is None and self.plan_id is None

    def clean(self) -> None:
        """Refuse what nothing enforces, and another's playbook: it would reveal its cost."""
        if (self.scope, self.window) not in ENFORCED.get(self.unit, []):
            raise ValidationError(f"{self.get_unit_display()}: cannot be limited in this way.")
        user = self.user if self.user_id else None
        if self.playbook_id and user and not hooks.playbook_names(user, ids=[self.playbook_id]):
            raise ValidationError({"playbook_id": "This user has no such playbook."})


_ACCOUNT, _STORED = Limit.Scope.ACCOUNT, (Limit.Scope.ACCOUNT, Limit.Window.ANY)
_SPENT = [(scope.value, window) for scope in Limit.Scope for window in ("day", "month")]
ENFORCED: dict[str, list[tuple[str, str]]] = {
    Limit.Unit.USD: _SPENT,
    Limit.Unit.TOKENS: [(_ACCOUNT, "month")],
    Limit.Unit.EVOLUTIONS: [(_ACCOUNT, "month")],
    Limit.Unit.REPORTS: [(_ACCOUNT, "hour")],
    Limit.Unit.PLAYBOOKS: [_STORED],
    Limit.Unit.KEYS: [_STORED],
    Limit.Unit.STORED_PLAYBOOKS: [_STORED],
    Limit.Unit.STORED_VERSIONS: [_STORED],
    Limit.Unit.STORED_MB: [_STORED],
}
"""The scopes and windows in which each unit is limited."""
