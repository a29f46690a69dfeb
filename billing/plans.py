"""Which plan applies to somebody at this moment; None while billing is off: nothing is limited."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction

from accounts.clock import database_now
from accounts.models import User
from billing.models import BillingAccount, Plan
from billing.periods import Span, span_at
from billing.standard_plans import STANDARD


@dataclass(frozen=True)
class Entitlement:
    """The plan that applies, and the part of time over which its monthly limits count.

    `account` is None for somebody who never had another plan than the default one. Its own plan
    may be another than `plan`: after the grace of a failed payment the default one applies.
    """

    plan: Plan
    span: Span
    account: BillingAccount | None = None

    @property
    def status(self) -> str:
        return self.account.status if self.account else BillingAccount.Status.FREE


def plan_of(user: User) -> Plan | None:
    """The plan that applies to the user; None while billing is off."""
    entitlement = entitlement_of(user)
    return entitlement.plan if entitlement else None


def entitlement_of(user: User) -> Entitlement | None:
    """The user's plan and period at this moment, after any grace; None while billing is off."""
    return entitlement_for(user.pk)


def entitlement_for(user_id: UUID, *, now: datetime | None = None) -> Entitlement | None:
    """As `entitlement_of`, by the user's id; `now` where the caller has read the clock already."""
    if not settings.BILLING_ENABLED:
        return None
    now = now or database_now()
    account = BillingAccount.objects.select_related("plan").filter(user=user_id).first()
    if account is None or account.plan is None or not account.is_entitled(now):
        return Entitlement(default_plan(), span_at(now), account)
    return Entitlement(
        account.plan, span_at(now, account.period_start, account.period_end), account
    )


def default_plan() -> Plan:
    """The plan of everybody who has no other."""
    plan = Plan.objects.filter(is_default=True).first()
    if plan is None:
        load_plans()
        plan = Plan.objects.get(is_default=True)
    return plan


def so_many(number: int, one: str) -> str:
    """In words of a limit: "1 playbook", "1,000 playbooks"."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def load_plans() -> int:
    """The standard plans exist; those that do already stay as staff made them. Says how many new.

    The migration does the same once; this brings one back that the tables lost.
    """
    has_default = Plan.objects.filter(is_default=True).exists()
    made = 0
    with transaction.atomic():
        for fields in STANDARD:
            fresh = fields | {"is_default": fields.get("is_default", False) and not has_default}
            slug = fresh.pop("slug")
            made += Plan.objects.get_or_create(slug=slug, defaults=fresh)[1]
        if not Plan.objects.filter(is_default=True).exists():
            free = Plan.objects.filter(price_lookup_key="", is_active=True)[:1]
            Plan.objects.filter(pk__in=list(free.values_list("pk", flat=True))).update(
                is_default=True
            )
    return made
