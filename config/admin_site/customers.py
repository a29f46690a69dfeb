"""One account as support needs it: plan, spending, keys, jobs, limits, requests, audit log."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, Model, Q, Sum
from django.http import HttpRequest
from django.urls import reverse

from accounts.models import ApiKey, User
from billing.limits.plan_limits import report_rate
from billing.models import Limit, UsageRecord
from billing.plans.entitlements import entitlement_for, find_quota_period
from config.admin_site.dashboard import ALERT, OK, Dashboard, Tile, outcomes_by_bucket
from core.admin import changelist_url, may
from core.clock import database_now
from core.models import AuditEntry
from core.ratelimit.limits import read_rate_limit
from evolution.models import EvolutionJob, Outcome
from mcp_bridge.models import ClientActivity
from playbooks.models import Playbook, ReviewItem

DAYS, ROWS = 30, 8
RATES = ("report_outcome", "create_playbook", "open_session", "ask_playground", "send_mail")
"""Limits of settings.RATE_LIMITS that count by user over all processes."""


@dataclass(frozen=True)
class Listing:
    """A list of the page: whose rows `owner` names, and the attributes that it shows of each."""

    title: str
    model: type[Model]
    owner: str
    columns: tuple[str, ...]


LISTINGS = (
    Listing("API keys", ApiKey, "user", ("name", "state", "last_used_at", "expires_at")),
    Listing("Playbooks", Playbook, "owner", ("name", "status", "updated_at")),
    Listing(
        "Evolutions",
        EvolutionJob,
        "playbook__owner",
        ("playbook", "status", "error_code", "wait_reason", "created_at"),
    ),
    Listing("Custom limits", Limit, "user", ("unit", "window", "amount")),
    Listing(
        "MCP requests",
        ClientActivity,
        "user",
        ("client", "credential", "tool", "accepted_at", "refused_at", "refusal"),
    ),
    Listing("Audit log", AuditEntry, "owner_id", ("action", "actor", "request_id", "at")),
)


@dataclass(frozen=True)
class Table:
    """The newest rows: a link to each or none, and its cells; `href` leads to all of them."""

    title: str
    href: str
    columns: list[str]
    rows: list[tuple[str, list[Any]]]


def read_customer(request: HttpRequest, user: User) -> dict[str, Any]:
    """What the page shows to the reader's permissions, in a bounded number of queries."""
    now = database_now()
    reported = outcomes_by_bucket(now, DAYS, rows=Outcome.objects.filter(playbook__owner=user))
    tables = [_table(one, user) for one in LISTINGS if may(request, "view", one.model)]
    return {
        "panel": Dashboard(now, _figures(user), DAYS, reported),
        "tables": [*tables, _rate_table(user)],
        "outcomes_href": changelist_url("evolution_outcome", owner=user.pk),
    }


def _figures(user: User) -> list[Tile]:
    since = database_now() - timedelta(days=DAYS)
    usage = UsageRecord.objects.filter(user=user, created_at__gte=since)
    spent = usage.aggregate(
        cost=Sum("cost_usd", default=0), unpriced=Count("pk", filter=Q(cost_usd=None))
    )
    failed = EvolutionJob.objects.filter(
        playbook__owner=user, status="failed", completed_at__gte=since
    ).count()
    note = f"{spent['unpriced']} calls with an unknown price" if spent["unpriced"] else ""
    jobs = changelist_url("evolution_evolutionjob", owner=user.pk, state="failed")
    reviews = ReviewItem.objects.pending().filter(playbook__owner=user).count()
    return [
        *_plan_figures(user),
        Tile(
            *(f"Spent in {DAYS} days", f"${spent['cost']:.2f}"),
            *(changelist_url("billing_usagerecord", owner=user.pk), note),
        ),
        Tile("Evolutions failed", str(failed), jobs, "", ALERT if failed else OK),
        Tile("Needs review", str(reviews), changelist_url("playbooks_reviewitem", owner=user.pk)),
    ]


def _plan_figures(user: User) -> list[Tile]:
    """The plan and what is used of its month; nothing while billing is off."""
    entitlement = entitlement_for(user.pk)
    if entitlement is None:
        return []
    href = changelist_url("billing_billingaccount", owner=user.pk)
    figures = [
        Tile("Plan", entitlement.plan.name, href, entitlement.account.status.replace("_", " "))
    ]
    period = find_quota_period(user.pk, entitlement.period)
    if period is not None:
        used = f"{period.tokens_used:,} tokens, {period.evolutions_used:,} evolutions"
        rows = changelist_url("billing_quotaperiod", owner=user.pk)
        figures.append(Tile("Used this month", used, rows))
    return figures


def _table(listing: Listing, user: User) -> Table:
    label = listing.model._meta.label_lower.replace(".", "_")
    found = listing.model._default_manager.filter(**{listing.owner: user.pk})
    newest = found if found.ordered else found.order_by("-created_at")
    rows = newest.select_related(*listing.owner.split("__")[:-1])[:ROWS]
    return Table(
        listing.title,
        changelist_url(label, owner=user.pk),
        [name.removesuffix("_at").replace("_", " ") for name in listing.columns],
        [
            (
                reverse(f"admin:{label}_change", args=[row.pk]),
                [getattr(row, name) for name in listing.columns],
            )
            for row in rows
        ],
    )


def _rate_table(user: User) -> Table:
    """What the account has used of its rates; that of reports may be a limit of its own."""
    rows: list[tuple[str, list[Any]]] = []
    for name in RATES:
        rate = report_rate(user) if name == "report_outcome" else settings.RATE_LIMITS[name]
        left = read_rate_limit(name, str(user.pk), rate)
        rows.append(("", [name, str(left.limit - left.remaining), rate, f"{left.reset} s"]))
    href = changelist_url("billing_limit", owner=user.pk)
    return Table("Rate limits", href, ["limit", "used", "allowed", "resets in"], rows)
