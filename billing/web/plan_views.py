"""Pages of a user's plan: what it includes, what is used, checkout and billing portal."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from billing.limits.overage import set_overage
from billing.models import Plan
from billing.plans.entitlements import overage_problem
from billing.plans.summary import limit_gauges, summarize_plan
from billing.stripe import subscriptions
from core.errors import AceError
from core.http.requests import UserRequest, site_url
from core.security.scopes import Principal

MAX_POLLS = 40
View = Callable[..., HttpResponse]


def billing_required(view: View) -> View:
    """Show a page that says so while billing is off."""

    @wraps(view)
    def wrapped(request: UserRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if settings.BILLING_ENABLED:
            return view(request, *args, **kwargs)
        return render(
            request,
            "billing/billing_disabled.html",
            status=404 if request.method == "POST" else 200,
        )

    return wrapped


@login_required
@require_safe
@never_cache
@billing_required
def plan(request: UserRequest) -> HttpResponse:
    paid = request.GET.get("paid", "")
    if paid == "1":
        subscriptions.refresh_subscription(user=request.user)
    summary = summarize_plan(user=request.user)
    is_subscribed = bool(summary.account.stripe_subscription_id)
    context = {
        "summary": summary,
        "state": summary.account.payment_state(timezone.now()),
        "gauges": limit_gauges(summary, request.user),
        "overage_problem": overage_problem(summary),
        "plans": Plan.objects.filter(is_active=True),
        "invoices": subscriptions.list_invoices(user=request.user),
        "payment_pending": paid == "1" and not is_subscribed,
        "payment_confirmed": paid == "1" and is_subscribed,
        "payment_canceled": paid == "no",
        "next": 1,
    }
    return render(request, "billing/plan.html", context)


@login_required
@require_safe
@never_cache
@billing_required
def confirmation(request: UserRequest) -> HttpResponse:
    """Polled after a payment until the subscription is known."""
    subscriptions.refresh_subscription(user=request.user)
    if summarize_plan(user=request.user).account.stripe_subscription_id:
        done = f"{reverse('billing:plan')}?paid=1"
        if not request.htmx:
            return redirect(done)
        return HttpResponse(status=204, headers={"HX-Redirect": done})
    polls = request.GET.get("n", "")
    number = int(polls) if polls.isascii() and polls.isdigit() and len(polls) < 4 else 0
    context = {"next": 0 if number >= MAX_POLLS else number + 1}
    return render(request, "billing/_payment_pending.html", context)


@login_required
@require_POST
@billing_required
def subscribe(request: UserRequest) -> HttpResponse:
    plan, interval = request.POST.get("plan", ""), request.POST.get("interval", "month")
    return redirect_to_stripe(
        request,
        lambda site: subscriptions.subscribe(
            user=request.user, plan=plan, interval=interval, site=site
        ),
    )


@login_required
@require_POST
@billing_required
def portal(request: UserRequest) -> HttpResponse:
    return redirect_to_stripe(
        request, lambda site: subscriptions.open_portal(user=request.user, site=site)
    )


@login_required
@require_POST
@billing_required
def overage(request: UserRequest) -> HttpResponse:
    """Allow calls beyond the plan, or end that."""
    account, on = summarize_plan(user=request.user).account, "allow" in request.POST
    try:
        set_overage(account=account, on=on, by=Principal.of(request.user))
    except AceError as error:
        messages.error(request, error.message)
    return redirect("billing:plan")


def redirect_to_stripe(request: UserRequest, address_of: Callable[[str], str]) -> HttpResponse:
    """Redirect to Stripe's page, or back to the plan with the error message."""
    try:
        address = address_of(site_url(request))
    except AceError as error:
        messages.error(request, error.message)
        return redirect("billing:plan")
    response = HttpResponseRedirect(address)
    response.status_code = 303  # the form is a POST, the page a GET
    return response
