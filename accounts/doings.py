"""What was done to a person's account, and by whom: the same words for the page and for REST."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, QuerySet

from accounts.models import AuditEntry, User
from accounts.querysets import is_uuid
from accounts.records import action_said, detail_said

WHAT = {
    "": ("All", ()),
    "playbooks": ("Playbooks", ("playbook", "bullet", "heldtext")),
    "evolutions": ("Evolutions", ("evolutionjob", "outcome")),
    "keys": ("Keys and apps", ("apikey", "llmkey", "application", "accesstoken")),
    "account": ("Account", ("user", "budget", "billingaccount")),
}
WHO = {"": "Anybody", "me": "Me", "key": "A key of mine", "staff": "Staff"}


@dataclass(frozen=True)
class Doing:
    """One entry. `by` is `me`, `key` (then `key` begins as it does), `staff` or `platform`.

    Which of the staff it was is for staff to know. `about` is the name that a playbook or a key
    has now; empty where there is none.
    """

    at: datetime
    action: str
    said: str
    by: str
    key: str
    subject: str
    subject_id: str
    about: str
    detail: str

    @property
    def who(self) -> str:
        """In words for the page."""
        words = {"platform": "The platform", "staff": "Staff", "me": "You"}
        return words.get(self.by) or f"Key {self.key}…"


def chosen(rows: QuerySet[AuditEntry], what: str, who: str) -> QuerySet[AuditEntry]:
    """Those about one kind of rows, by one kind of people; empty: all."""
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


def doings_of(entries: list[AuditEntry], user: User) -> list[Doing]:
    """The entries in words, with the names that playbooks and keys have now; two queries."""
    ids = {entry.subject_id for entry in entries} | {_playbook(entry) for entry in entries}
    known = {str(pk) for pk in ids if is_uuid(pk)}
    names = {
        str(pk): name
        for rows in (user.playbooks, user.api_keys)
        for pk, name in rows.filter(pk__in=known).values_list("pk", "name")
    }
    return [_doing(entry, user, names) for entry in entries]


def _doing(entry: AuditEntry, user: User, names: dict[str, str]) -> Doing:
    by = _by(entry, user)
    return Doing(
        at=entry.at,
        action=entry.action,
        said=action_said(entry.action),
        by=by,
        key=f"ace_live_{entry.key_prefix}" if by == "key" else "",
        subject=entry.subject,
        subject_id=entry.subject_id,
        about=names.get(entry.subject_id) or names.get(_playbook(entry), ""),
        detail=detail_said(entry, but="playbook"),
    )


def _by(entry: AuditEntry, user: User) -> str:
    if entry.actor_id is None:
        return "platform"
    if entry.actor_id != user.pk:
        return "staff"
    return "key" if entry.key_prefix else "me"


def _playbook(entry: AuditEntry) -> str:
    return str(entry.detail.get("playbook", ""))
