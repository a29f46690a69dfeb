"""The rows of the table of limits that apply to an account, and which of them counts."""

from collections.abc import Iterable
from decimal import Decimal
from uuid import UUID

from django.db.models import Q, UUIDField

from billing.models import Limit
from core.clock import database_now
from core.sql.compiled_queries import CompiledQuery, Param

OWN = (Limit.SetBy.OPERATOR, Limit.SetBy.PLAN)


def find_limits(
    *, user_id: UUID, playbook_id: UUID | None = None, plan_id: UUID | None = None
) -> list[Limit]:
    """The limits of this account, of one of its playbooks, of its plan and of all accounts."""
    found = LIMITS_QUERY.all(user=user_id, playbook=playbook_id, plan=plan_id)
    if not any(row.until for row in found):
        return found
    now = database_now()
    return [row for row in found if row.until is None or row.until > now]


def limit_of_account(rows: Iterable[Limit], unit: str, window: str) -> Limit | None:
    """The row that limits the account: one of its own, else its plan's, else the one for all."""
    fitting = (
        row
        for row in rows
        if (row.scope, row.unit, row.window) == (Limit.Scope.ACCOUNT, unit, window)
        and row.set_by in OWN
    )
    return min(fitting, key=lambda row: (row.user_id is None, row.plan_id is None), default=None)


def account_amount(rows: Iterable[Limit], unit: str, window: str) -> Decimal | None:
    """How much the account may use; None: no limit."""
    row = limit_of_account(rows, unit, window)
    return row.amount if row else None


USER, PLAYBOOK, PLAN = (Param(name, UUIDField()) for name in ("user", "playbook", "plan"))
# Without a playbook or plan its condition matches no row: in SQL, NULL equals nothing.
LIMITS_QUERY = CompiledQuery(
    lambda: Limit.objects.filter(
        Q(user=USER, playbook_id=None)
        | (Q(playbook_id=PLAYBOOK) & (Q(user=USER) | Q(user=None)))
        | Q(plan=PLAN)
        | Q(user=None, playbook_id=None, plan=None)
    )
)
