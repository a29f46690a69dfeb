"""The page on which a person reads what was done to their account, and by whom."""

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import F, QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from accounts.http import UserRequest
from accounts.models import AuditEntry, User
from accounts.records import action_said, detail_said

PAGE = 50
WHAT = {
    "": ("All", ()),
    "playbooks": ("Playbooks", ("playbook", "bullet", "heldtext")),
    "evolutions": ("Evolutions", ("evolutionjob", "outcome")),
    "keys": ("Keys and apps", ("apikey", "llmkey", "application", "accesstoken")),
    "account": ("Account", ("user",)),
}
WHO = {"": "Anybody", "me": "Me", "key": "A key of mine", "staff": "Staff"}
PAGES = {"playbook": "playbooks:detail", "evolutionjob": "evolution:job"}


@login_required
@require_safe
def activity(request: UserRequest) -> HttpResponse:
    what, who = (request.GET.get(name, "") for name in ("what", "who"))
    what, who = what if what in WHAT else "", who if who in WHO else ""
    rows = chosen(AuditEntry.objects.for_user(request.user), what, who)
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "lines": [line_of(entry, request.user) for entry in page],
        "what": what,
        "who": who,
        "whats": [(value, label) for value, (label, _) in WHAT.items()],
        "whos": WHO.items(),
    }
    return render(request, "accounts/activity.html", context)


def chosen(rows: QuerySet[AuditEntry], what: str, who: str) -> QuerySet[AuditEntry]:
    if what:
        rows = rows.filter(subject__in=WHAT[what][1])
    match who:
        case "me":
            return rows.filter(actor_id=F("owner_id"), key_prefix="")
        case "key":
            return rows.filter(actor_id=F("owner_id")).exclude(key_prefix="")
        case "staff":
            return rows.exclude(actor_id=F("owner_id")).exclude(actor_id=None)
    return rows


def line_of(entry: AuditEntry, user: User) -> dict[str, object]:
    """One entry in words; which of the staff it was is for staff to know."""
    page = PAGES.get(entry.subject)
    return {
        "at": entry.at,
        "action": action_said(entry.action),
        "who": who_did(entry, user),
        "detail": detail_said(entry),
        "href": reverse(page, args=[entry.subject_id]) if page else "",
    }


def who_did(entry: AuditEntry, user: User) -> str:
    if entry.actor_id is None:
        return "The platform"
    if entry.actor_id != user.pk:
        return "Staff"
    return f"Key ace_live_{entry.key_prefix}…" if entry.key_prefix else "You"
