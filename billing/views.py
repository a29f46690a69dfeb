"""Page: what the models used and cost."""

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.http import UserRequest
from billing import services
from billing.chart import SPANS, bars

PERIODS = {"day": "By day", "week": "By week", "month": "By month"}


@login_required
@require_safe
def usage(request: UserRequest) -> HttpResponse:
    period = request.GET.get("period", "day")
    rows = services.usage_summary(who=request.user, period=period)
    tokens = {row.start: row.total_tokens for row in rows}
    context = {
        "rows": rows,
        "period": period,
        "periods": PERIODS,
        "bars": bars(tokens, period=period, today=timezone.now().date()),
        "span": f"{SPANS[period]} {period}s",
        "most": max(tokens.values(), default=0),
    }
    return render(request, "billing/usage.html", context)
