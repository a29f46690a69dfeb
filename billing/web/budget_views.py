"""Pages of one's own budgets: how they stand, and the form that sets one."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from billing.limits.budgets import list_budgets, set_budget
from billing.models import Budget
from billing.web.forms import BudgetForm
from core.errors import NotFound
from core.http.requests import UserRequest
from core.security.scopes import Principal


@login_required
@require_safe
def budgets(request: UserRequest) -> HttpResponse:
    watched = list_budgets(who=request.user)
    names = playbook_names(request)
    with_budget = {one.budget.playbook_id for one in watched}
    context = {
        "budgets": [(one, names.get(one.budget.playbook_id)) for one in watched],
        "has_account_budget": None in with_budget,
        "others": [(pk, name) for pk, name in names.items() if pk not in with_budget],
    }
    return render(request, "billing/budget_list.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit_budget(request: UserRequest) -> HttpResponse:
    """The form for the account, or for the playbook that the address names."""
    playbook_id, name = requested_playbook(request)
    now = Budget.objects.for_user(request.user).filter(playbook_id=playbook_id).first()
    form = BudgetForm(request.POST or None, initial=BudgetForm.values_of(now))
    form.submit(set_budget, by=Principal.of(request.user), playbook_id=playbook_id)
    if form.is_valid():
        kept = any(form.cleaned_data[field] for field in ("usd_per_day", "usd_per_month"))
        messages.success(request, "The budget is set." if kept else "There is no budget now.")
        return redirect("billing:budgets")
    context = {"form": form, "name": name}
    return render(request, "billing/budget_form.html", context, status=form.status)


def requested_playbook(request: UserRequest) -> tuple[UUID | None, str]:
    """The playbook in the address and its name; (None, "") for the account. Raises NotFound."""
    text = request.GET.get("playbook", "")
    if not text:
        return None, ""
    for pk, name in playbook_names(request).items():
        if str(pk) == text:
            return pk, name
    raise NotFound("playbook")


def playbook_names(request: UserRequest) -> dict[UUID | None, str]:
    return dict(request.user.playbooks.order_by("name").values_list("pk", "name"))
