"""Pages of budgets: the list with what is spent, and the form."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from accounts.hooks import hooks
from billing.limits.spending import budget_rows, list_budgets, set_budget
from billing.models import NOBODY
from billing.web.forms import BudgetForm
from core.errors import NotFound
from core.http.requests import UserRequest
from core.security.scopes import Principal


@login_required
@require_safe
def budgets(request: UserRequest) -> HttpResponse:
    found = list_budgets(who=request.user)
    names = hooks.playbook_names(request.user)
    with_budget = {one.playbook_id for one in found}
    context = {
        "budgets": [(one, names.get(one.playbook_id or NOBODY)) for one in found],
        "has_account_budget": None in with_budget,
        "others": [(pk, name) for pk, name in names.items() if pk not in with_budget],
    }
    return render(request, "billing/budget_list.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit_budget(request: UserRequest) -> HttpResponse:
    """The form for the account, or for the playbook in the URL."""
    playbook_id, name = requested_playbook(request)
    rows = budget_rows(request.user).filter(playbook_id=playbook_id)
    form = BudgetForm(request.POST or None, initial=BudgetForm.values_of(rows))
    form.submit(set_budget, by=Principal.of(request.user), playbook_id=playbook_id)
    if form.is_valid():
        is_set = any(form.cleaned_data[field] for field in ("usd_per_day", "usd_per_month"))
        messages.success(request, "Budget saved." if is_set else "Budget removed.")
        return redirect("billing:budgets")
    context = {"form": form, "name": name}
    return render(request, "billing/budget_form.html", context, status=form.status)


def requested_playbook(request: UserRequest) -> tuple[UUID | None, str]:
    """The playbook in the URL and its name; (None, "") for the account. Raises NotFound."""
    text = request.GET.get("playbook", "")
    if not text:
        return None, ""
    for pk, name in hooks.playbook_names(request.user).items():
        if str(pk) == text:
            return pk, name
    raise NotFound("playbook")
