"""The page on which a person reads what was done to their account, and by whom."""

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from accounts.doings import WHAT, WHO, Doing, chosen, doings_of
from accounts.http import UserRequest
from accounts.models import AuditEntry
from accounts.paging import NewestFirst

PAGE = 50
PAGES = {"playbook": "playbooks:detail", "evolutionjob": "evolution:job"}


@login_required
@require_safe
def activity(request: UserRequest) -> HttpResponse:
    what, who = (request.GET.get(name, "") for name in ("what", "who"))
    what, who = what if what in WHAT else "", who if who in WHO else ""
    rows = chosen(AuditEntry.objects.for_user(request.user), what, who)
    page = NewestFirst(rows, request.GET, size=PAGE)
    context = {
        "page": page,
        "lines": [(one, address_of(one)) for one in doings_of(list(page), request.user)],
        "what": what,
        "who": who,
        "whats": [(value, label) for value, (label, _) in WHAT.items()],
        "whos": WHO.items(),
    }
    return render(request, "accounts/activity.html", context)


def address_of(doing: Doing) -> str:
    page = PAGES.get(doing.subject)
    return reverse(page, args=[doing.subject_id]) if page else ""
