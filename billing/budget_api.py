"""One's own budgets, at the REST door."""

from decimal import Decimal
from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.rest import Door
from accounts.scopes import Scope
from billing.budgets import CENT, list_budgets, set_budget
from billing.models import Budget


class StandingShape(serializers.Serializer[Any]):
    """How much of an amount is spent. What runs at this moment counts with the most it can cost."""

    limit_usd = serializers.DecimalField(max_digits=10, decimal_places=2)
    spent_usd = serializers.DecimalField(max_digits=18, decimal_places=6)
    percent = serializers.IntegerField()
    state = serializers.ChoiceField(choices=["ok", "warning", "reached"])
    unpriced_calls = serializers.IntegerField(help_text="In no sum: their price is not known.")
    until = serializers.DateTimeField(help_text="When the next day, or month, begins (UTC).")


class BudgetIn(serializers.Serializer[Any]):
    """A budget; without an amount there is none."""

    usd_per_day = serializers.DecimalField(
        max_digits=10, decimal_places=2, min_value=CENT, allow_null=True, default=None
    )
    usd_per_month = serializers.DecimalField(
        max_digits=10, decimal_places=2, min_value=CENT, allow_null=True, default=None
    )
    warn_percent = serializers.IntegerField(
        min_value=1, max_value=100, default=80, help_text="A letter comes at this part of it."
    )
    stops = serializers.BooleanField(
        default=True, help_text="Evolutions that could go over it wait. false: a letter, no more."
    )


class BudgetShape(serializers.Serializer[Any]):
    """What you want to spend, and how much of it is spent."""

    playbook_id = serializers.UUIDField(allow_null=True, help_text="null: the whole account.")
    usd_per_day = serializers.DecimalField(max_digits=10, decimal_places=2, allow_null=True)
    usd_per_month = serializers.DecimalField(max_digits=10, decimal_places=2, allow_null=True)
    warn_percent = serializers.IntegerField()
    stops = serializers.BooleanField()
    day = StandingShape(allow_null=True)
    month = StandingShape(allow_null=True)


class BudgetsShape(serializers.Serializer[Any]):
    """Every budget, the account's first."""

    next = serializers.CharField(allow_null=True, help_text="Always null: one page holds all.")
    previous = serializers.CharField(allow_null=True)
    results = BudgetShape(many=True)


class BudgetsDoor(Door):
    """GET PUT /billing/budgets."""

    scopes: ClassVar = {"GET": Scope.READ, "PUT": Scope.ACCOUNT}

    @extend_schema(operation_id="list_budgets", responses=BudgetsShape)
    def get(self, request: Request) -> Response:
        """What you want to spend in a day or a month, and how much of it is spent."""
        results = [shown(one.budget, one.day, one.month) for one in list_budgets(who=self.who)]
        return Response(BudgetsShape({"next": None, "previous": None, "results": results}).data)

    @extend_schema(operation_id="set_budget", request=BudgetIn, responses=BudgetShape)
    def put(self, request: Request) -> Response:
        """Set the budget of your account. Without an amount it has none."""
        return put_budget(self, None)


class PlaybookBudgetDoor(Door):
    """PUT /billing/budgets/{pk}."""

    scopes: ClassVar = {"PUT": Scope.ACCOUNT}

    @extend_schema(operation_id="set_playbook_budget", request=BudgetIn, responses=BudgetShape)
    def put(self, request: Request, pk: UUID) -> Response:
        """Set the budget of a playbook of yours. Without an amount it has none."""
        return put_budget(self, pk)


def put_budget(door: Door, playbook_id: UUID | None) -> Response:
    sent: dict[str, Decimal | int | bool | None] = door.sent(BudgetIn)
    set_budget(by=door.who, playbook_id=playbook_id, **sent)  # type: ignore[arg-type]  # BudgetIn's fields are its parameters
    for one in list_budgets(who=door.who):
        if one.budget.playbook_id == playbook_id:
            return Response(BudgetShape(shown(one.budget, one.day, one.month)).data)
    empty = Budget(playbook_id=playbook_id)
    return Response(BudgetShape(shown(empty, None, None)).data)


def shown(budget: Budget, day: object, month: object) -> dict[str, Any]:
    names = ("playbook_id", "usd_per_day", "usd_per_month", "warn_percent", "stops")
    return {name: getattr(budget, name) for name in names} | {"day": day, "month": month}
