"""The page of the activity log: audit entries as users read them."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from accounts.hooks import hooks
from accounts.models import User
from core.http.pagination import KeysetPage
from core.http.requests import UserRequest
from core.models import AuditEntry
from core.sql.querysets import is_uuid

DETAIL_PAGES = {"playbook": "playbooks:detail", "evolutionjob": "evolution:evolution"}


@login_required
@require_safe
def activity(request: UserRequest) -> HttpResponse:
    page = KeysetPage(AuditEntry.objects.for_user(request.user), request.GET)
    context = {"page": page, "lines": activity_entries(list(page), request.user)}
    return render(request, "accounts/activity.html", context)


def activity_entries(entries: list[AuditEntry], user: User) -> list[dict[str, Any]]:
    """The lines of the page; two queries.

    Users do not learn which member of staff it was.
    """
    ids = {entry.subject_id for entry in entries} | {_playbook_id(entry) for entry in entries}
    known = {str(pk) for pk in ids if is_uuid(pk)}
    used = Q(pk__in=known) | Q(prefix__in={entry.key_prefix for entry in entries})
    keys = list(user.api_keys.filter(used))
    named = hooks.playbook_names(user, ids=known) | {key.pk: key.name for key in keys}
    names = {str(pk): name for pk, name in named.items()}
    prefixes = {key.prefix: key.visible_prefix for key in keys}
    return [_activity_entry(entry, user, names, prefixes) for entry in entries]


def _activity_entry(
    entry: AuditEntry, user: User, names: dict[str, str], prefixes: dict[str, str]
) -> dict[str, Any]:
    who, prefix = "You", prefixes.get(entry.key_prefix, entry.key_prefix)
    if entry.actor_id != user.pk:
        who = "Staff" if entry.actor_id else "The platform"
    elif entry.key_prefix:
        who = f"Key ace_live_{prefix}…" if prefix else "Key chosen by the operator"
    page = DETAIL_PAGES.get(entry.subject)
    return {
        "at": entry.at,
        "summary": describe_action(entry.action),
        "who": who,
        "href": reverse(page, args=[entry.subject_id]) if page else "",
        "subject_name": names.get(entry.subject_id) or names.get(_playbook_id(entry), ""),
        "detail": describe_detail(entry, without="playbook"),
    }


def _playbook_id(entry: AuditEntry) -> str:
    return str(entry.detail.get("playbook", ""))


# Verbs without a regular past tense, actions with a clearer description, and proper spellings.
IRREGULAR_PAST = {"set": "set", "reset": "reset", "undo": "undid", "withdraw": "withdrew"} | {
    **{"log": "logged", "rollback": "rolled back", "redrive": "redrove", "trigger": "started"},
    **{"cancel": "cancelled"},
}
DESCRIPTIONS = {"finish_onboarding": "Finished onboarding", "register_user": "Registered"}
SPELLINGS = {"api key": "API key", "llm key": "LLM key"}


def describe_action(action: str) -> str:
    """The service's name in the past tense: `revoke_api_key` → Revoked API key."""
    if action in DESCRIPTIONS:
        return DESCRIPTIONS[action]
    verb, *rest = action.split("_")
    words = " ".join([past_tense(verb), *rest])
    for plain, spelling in SPELLINGS.items():
        words = words.replace(plain, spelling)
    return words[:1].upper() + words[1:]


def past_tense(verb: str) -> str:
    if verb in IRREGULAR_PAST:
        return IRREGULAR_PAST[verb]
    if verb.endswith("y"):
        return f"{verb[:-1]}ied"
    return f"{verb}d" if verb.endswith("e") else f"{verb}ed"


def describe_detail(entry: AuditEntry, *, without: str = "") -> str:
    """The entry's figures in one line, except the one named `without`."""
    named = entry.detail.items()
    kept = {name: value for name, value in named if value not in {"", None} and name != without}
    return ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in kept.items())
