"""What each account pays beside what its model calls cost the operator, for staff."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db.models import Sum

from accounts.models import User
from billing.models import NOBODY, BillingAccount, DailySpend
from billing.money import from_minor_units
from billing.stripe import gateway

ZERO = Decimal(0)
DELETED = "deleted accounts"


@dataclass(frozen=True)
class Margin:
    """Revenue and cost of one account; `unpriced` calls cost more than is known.

    `revenue` is in the currency of the invoices, without conversion.
    """

    email: str
    user_id: UUID | None
    plan: str
    revenue: Decimal
    currency: str
    cost_usd: Decimal
    unpriced: int

    @property
    def margin(self) -> Decimal | None:
        """Revenue less cost; None in another currency than that of the cost."""
        return self.revenue - self.cost_usd if self.currency in {"", "usd"} else None


def margins(*, now: datetime, days: int = 30) -> list[Margin]:
    """Revenue and cost of the last days of all accounts with either, the worst margin first.

    Of a yearly payment a day's share counts for each day. Calls with owners' keys cost nothing.
    """
    since = (now - timedelta(days=days)).date()
    costs = _costs(since)
    accounts = {row.user_id: row for row in BillingAccount.objects.select_related("plan")}
    paid = _revenue(now, days)
    wanted = costs.keys() | {pk for pk, row in accounts.items() if row.stripe_customer_id in paid}
    names = dict(User.objects.filter(pk__in=wanted).values_list("pk", "email"))
    rows = []
    for pk in wanted:
        account = accounts.get(pk)
        revenue, currency = paid.get(account.stripe_customer_id if account else "", (ZERO, ""))
        cost, unpriced = costs.get(pk, (ZERO, 0))
        plan = account.plan.name if account and account.plan else ""
        email = names.get(pk, DELETED)
        known = None if pk == NOBODY else pk
        rows.append(Margin(email, known, plan, revenue, currency, cost, unpriced))
    return sorted(rows, key=lambda row: (row.revenue - row.cost_usd, row.email))


def _costs(since: date) -> dict[UUID, tuple[Decimal, int]]:
    rows = DailySpend.objects.filter(day__gte=since, own_key=False).order_by().values("user_id")
    sums = rows.annotate(usd=Sum("spent_usd"), unpriced=Sum("unpriced_calls"))
    return {
        row["user_id"]: (row["usd"], row["unpriced"])
        for row in sums
        if row["usd"] or row["unpriced"]
    }


def _revenue(now: datetime, days: int) -> dict[str, tuple[Decimal, str]]:
    """What customers paid for these days, and in which currency."""
    if not settings.BILLING_ENABLED:
        return {}
    found: dict[str, tuple[Decimal, str]] = {}
    for customer, invoice, is_yearly in gateway.mirror.paid_since(now - timedelta(days=365)):
        share = Decimal(days) / 365 if is_yearly else Decimal(1)
        recent = now.timestamp() - invoice["created"] <= timedelta(days=days).total_seconds()
        if recent or is_yearly:
            amount = from_minor_units(invoice["amount_paid"], invoice["currency"]) * share
            before = found.get(customer, (ZERO, ""))[0]
            total = (before + amount).quantize(Decimal("0.01"))
            found[customer] = (total, invoice["currency"])
    return found
