"""Pages of one's plan: what it includes, what is used, choosing another one, and paying for it."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.cache import cache
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from billing.errors import PaymentUnavailable
from billing.plans.summary import (
    display_state,
    has_stripe_customer,
    is_subscribed,
    limit_gauges,
    summarize_plan,
)
from billing.stripe import subscriptions
from core.errors import AceError
from core.http.requests import UserRequest, site_url

REFRESH_SECONDS = 5
"""Seconds between two questions to the payment provider for one person."""
MAX_POLLS = 40
View = Callable[..., HttpResponse]


def billing_required(view: View) -> View:
    """While billing is off every page of it says so kindly."""

    @wraps(view)
    def seen(request: UserRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if settings.BILLING_ENABLED:
            return view(request, *args, **kwargs)
        return render(
            request,
            "billing/billing_disabled.html",
            status=404 if request.method == "POST" else 200,
        )

    return seen


@login_required
@require_safe
@never_cache
@billing_required
def plan(request: UserRequest) -> HttpResponse:
    paid = request.GET.get("paid", "")
    if paid == "1":
        refresh_from_stripe(request.user)
    own = summarize_plan(user=request.user)
    subscribed = is_subscribed(own)
    context = {
        "own": own,
        "state": display_state(own),
        "gauges": limit_gauges(own, request.user),
        "subscribed": subscribed,
        "has_portal": has_stripe_customer(own),
        "plans": subscriptions.offered_plans(),
        "invoices": subscriptions.list_invoices(user=request.user),
        "waiting": paid == "1" and not subscribed,
        "thanks": paid == "1" and subscribed,
        "left": paid == "no",
        "next": 1,
    }
    return render(request, "billing/plan.html", context)


@login_required
@require_safe
@never_cache
@billing_required
def confirmation(request: UserRequest) -> HttpResponse:
    """Part of the page that a payment leads back to: waits until the subscription is known."""
    refresh_from_stripe(request.user)
    if is_subscribed(summarize_plan(user=request.user)):
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
    chosen = request.POST.get("plan", "")
    return redirect_to_stripe(
        request, lambda site: subscriptions.subscribe(user=request.user, plan=chosen, site=site)
    )


@login_required
@require_POST
@billing_required
def portal(request: UserRequest) -> HttpResponse:
    return redirect_to_stripe(
        request, lambda site: subscriptions.open_portal(user=request.user, site=site)
    )


def redirect_to_stripe(request: UserRequest, address_of: Callable[[str], str]) -> HttpResponse:
    """To the provider's page; back to the plan, with the reason, when there is none to go to."""
    try:
        address = address_of(site_url(request))
    except AceError as error:
        messages.error(request, error.message)
        return redirect("billing:plan")
    response = HttpResponseRedirect(address)
    # The form is sent by POST, the page it leads to is read.
    response.status_code = 303
    return response


def refresh_from_stripe(user: User) -> None:
    """What the provider says now is on record; a busy page does not ask it all the time.

    Nothing is granted because a browser came back: only what the provider itself says counts.
    """
    if not cache.add(f"billing-refreshed-{user.pk}", 1, REFRESH_SECONDS):
        return
    try:
        subscriptions.refresh_subscription(user=user)
    except PaymentUnavailable:
        return
