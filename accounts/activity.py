"""The page on which a person reads what was done to their account, and by whom."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.db.models import F, QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from accounts.http import UserRequest
from accounts.models import AuditEntry, User
from accounts.paging import NewestFirst
from accounts.records import action_said, detail_said

PAGE = 50
WHAT = {
    "": ("All", ()),
    "playbooks": ("Playbooks", ("playbook", "bullet", "heldtext")),
    "evolutions": ("Evolutions", ("evolutionjob", "outcome")),
    "keys": ("Keys and apps", ("apikey", "llmkey", "application", "accesstoken")),
    "account": ("Account", ("user", "budget", "billingaccount")),
}
WHO = {"": "Anybody", "me": "Me", "key": "A key of mine", "staff": "Staff"}
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
        "lines": lines_of(list(page), request.user),
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


def lines_of(entries: list[AuditEntry], user: User) -> list[dict[str, object]]:
    """The entries in words, with the names that playbooks and keys have now; two queries."""
    ids = {entry.subject_id for entry in entries} | {playbook_of(entry) for entry in entries}
    known = {str(pk) for pk in ids if is_uuid(pk)}
    names = {
        str(pk): name
        for rows in (user.playbooks, user.api_keys)
        for pk, name in rows.filter(pk__in=known).values_list("pk", "name")
    }
    return [line_of(entry, user, names) for entry in entries]


def line_of(entry: AuditEntry, user: User, names: dict[str, str]) -> dict[str, object]:
    """One entry in words; which of the staff it was is for staff to know."""
    page = PAGES.get(entry.subject)
    return {
        "at": entry.at,
        "action": action_said(entry.action),
        "about": names.get(entry.subject_id) or names.get(playbook_of(entry), ""),
        "who": who_did(entry, user),
        "detail": detail_said(entry, but="playbook"),
        "href": reverse(page, args=[entry.subject_id]) if page else "",
    }


def playbook_of(entry: AuditEntry) -> str:
    return str(entry.detail.get("playbook", ""))


def is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def who_did(entry: AuditEntry, user: User) -> str:
    if entry.actor_id is None:
        return "The platform"
    if entry.actor_id != user.pk:
        return "Staff"
    return f"Key ace_live_{entry.key_prefix}…" if entry.key_prefix else "You"
