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

from accounts.errors import AceError
from accounts.http import UserRequest, site_of
from accounts.models import User
from billing import subscriptions
from billing.own_plan import read_plan
from billing.plan_shown import gauges_of, is_known_to_provider, is_subscribed, state_of
from billing.refusals import PaymentUnavailable

ASK_EVERY = 5
"""Seconds between two questions to the payment provider for one person."""
MOST_POLLS = 40
View = Callable[..., HttpResponse]


def with_billing(view: View) -> View:
    """While billing is off every page of it says so kindly."""

    @wraps(view)
    def seen(request: UserRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if settings.BILLING_ENABLED:
            return view(request, *args, **kwargs)
        return render(request, "billing/off.html", status=404 if request.method == "POST" else 200)

    return seen


@login_required
@require_safe
@never_cache
@with_billing
def plan(request: UserRequest) -> HttpResponse:
    paid = request.GET.get("paid", "")
    if paid == "1":
        look_again(request.user)
    own = read_plan(user=request.user)
    subscribed = is_subscribed(own)
    context = {
        "own": own,
        "state": state_of(own),
        "gauges": gauges_of(own, request.user),
        "subscribed": subscribed,
        "has_portal": is_known_to_provider(own),
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
@with_billing
def confirmation(request: UserRequest) -> HttpResponse:
    """Part of the page that a payment leads back to: waits until the subscription is known."""
    look_again(request.user)
    if is_subscribed(read_plan(user=request.user)):
        done = f"{reverse('billing:plan')}?paid=1"
        if not request.htmx:
            return redirect(done)
        return HttpResponse(status=204, headers={"HX-Redirect": done})
    polls = request.GET.get("n", "")
    number = int(polls) if polls.isascii() and polls.isdigit() and len(polls) < 4 else 0
    context = {"next": 0 if number >= MOST_POLLS else number + 1}
    return render(request, "billing/_waiting.html", context)


@login_required
@require_POST
@with_billing
def subscribe(request: UserRequest) -> HttpResponse:
    chosen = request.POST.get("plan", "")
    return leave(
        request, lambda site: subscriptions.subscribe(user=request.user, plan=chosen, site=site)
    )


@login_required
@require_POST
@with_billing
def portal(request: UserRequest) -> HttpResponse:
    return leave(request, lambda site: subscriptions.open_portal(user=request.user, site=site))


def leave(request: UserRequest, address_of: Callable[[str], str]) -> HttpResponse:
    """To the provider's page; back to the plan, with the reason, when there is none to go to."""
    try:
        address = address_of(site_of(request))
    except AceError as error:
        messages.error(request, error.message)
        return redirect("billing:plan")
    response = HttpResponseRedirect(address)
    # The form is sent by POST, the page it leads to is read.
    response.status_code = 303
    return response


def look_again(user: User) -> None:
    """What the provider says now is on record; a busy page does not ask it all the time.

    Nothing is granted because a browser came back: only what the provider itself says counts.
    """
    if not cache.add(f"billing-asked-{user.pk}", 1, ASK_EVERY):
        return
    try:
        subscriptions.refresh_subscription(user=user)
    except PaymentUnavailable:
        return
