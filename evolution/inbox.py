"""The inbox: what waits for a decision of the user, and the e-mail that says so.

Suggestions to review, evolutions that failed or wait for the user, versions that a trial took back,
and keys that expire. Their rows are the truth; a user's settings keep what they dismissed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import CharField, DateTimeField, Exists, F, OuterRef, Q, QuerySet, Value
from django.utils import timezone

from accounts.models import ApiKey, User
from billing.admission import LIMITS
from core.emails import send_email
from core.sql.compiled_queries import CompiledQuery, Param, uuid_param
from evolution.models import EvolutionJob
from playbooks.models import Playbook, ReviewItem, Trial

MOST = 100
NOW, RECENT, SOON = timedelta(), timedelta(days=30), timedelta(days=14)
DAY, HOUR = timedelta(days=1), 3600
PATIENCE = 3
"""Attempts after which an evolution that waits is no passing fault."""
MOST_SEEN = 300
Moment = Callable[[timedelta], Any]
"""The time so long after now, or its Param."""


@dataclass(frozen=True)
class InboxItem:
    """One entry: `row` is the ReviewItem, EvolutionJob, Trial or ApiKey of its `kind`."""

    kind: str
    row: Any
    at: datetime

    @property
    def name(self) -> str:
        """What `dismiss_inbox_item` takes."""
        return f"{self.kind}:{self.row.pk}"


def inbox_items(user: User, playbook: Playbook | None = None) -> list[InboxItem]:
    """What waits for the user, newest first, at most MOST; of one `playbook` only."""
    found = _entries(user, playbook)
    rows: dict[UUID, Any] = {}
    for kind, (queryset, _, related, texts) in _SOURCES.items():
        ids = [pk for known, pk, _ in found if known == kind]
        if ids:
            wanted: Any = queryset(user, timezone.now().__add__)
            wanted = wanted.select_related(*related).defer(*texts)
            rows |= {row.pk: row for row in wanted.filter(pk__in=ids)}
    return [InboxItem(kind, rows[pk], at) for kind, pk, at in found if pk in rows]


def inbox_count(user: User) -> int:
    """The number of entries, for the navigation; one query."""
    return len(_entries(user))


def dismiss_inbox_item(*, user: User, name: str) -> None:
    """Keep an entry, such as `trial:<id>`, out of the user's inbox; suggestions are decided."""
    if name.partition(":")[0] in {"evolution", "waiting", "trial", "key"}:
        _remember(user, seen=[*_marks(user).get("seen", []), name[:60]][-MOST_SEEN:])


def set_inbox_emails(*, user: User, wanted: bool) -> None:
    """Send the daily e-mail about new entries, or not."""
    _remember(user, mail=wanted)


def wants_inbox_emails(user: User) -> bool:
    return bool(_marks(user).get("mail", True))


def send_inbox_emails() -> int:
    """E-mail each user with new entries, at most once a day; returns how many.

    Not inside a transaction; once an hour, by whichever host comes first.
    """
    if not cache.add("inbox-emails", 1, HOUR):
        return 0
    now = timezone.now()
    new: list[QuerySet[Any]] = [
        ReviewItem.objects.pending().filter(created_at__gt=now - DAY),
        EvolutionJob.objects.filter(status="failed", completed_at__gt=now - DAY),
        Trial.objects.filter(verdict="worse", ended_at__gt=now - DAY),
    ]
    owners = {pk for rows in new for pk in rows.values_list("playbook__owner", flat=True)}
    users = User.objects.filter(pk__in=owners - {None}, is_active=True, email_verified=True)
    return sum(_send(user, now) for user in users)


def _send(user: User, now: datetime) -> int:
    marks, count = _marks(user), inbox_count(user)
    mailed = datetime.fromisoformat(marks["mailed"]) if "mailed" in marks else now - 2 * DAY
    if not count or not wants_inbox_emails(user) or mailed > now - DAY:
        return 0
    # Recorded first: an e-mail lost with its process is better than one each hour.
    _remember(user, mailed=now.isoformat())
    new = (item.row for item in inbox_items(user) if item.kind == "trial" and item.at > now - DAY)
    trials = "\n".join(f"{trial.playbook}: {trial.reason}" for trial in new)
    site = settings.PUBLIC_URL
    send_email("inbox", to=user.email, site=site, count=str(count), trials=trials)
    return 1


def _entries(user: User, playbook: Playbook | None = None) -> list[tuple[str, UUID, datetime]]:
    """Kind, id and time of each entry that was not dismissed, newest first; one query."""
    now, rows = timezone.now(), ENTRIES_OF_PLAYBOOK if playbook else ENTRIES
    values: dict[str, Any] = {str(after): now + after for after in (NOW, -RECENT, -SOON, SOON)}
    found = rows.all(user=user.pk, playbook=playbook and playbook.pk, **values)
    seen = set(_marks(user).get("seen", []))
    return [row for row in found if f"{row[0]}:{row[1]}" not in seen][:MOST]


def _union(**only: Any) -> QuerySet[Any]:
    """The entries of a user, dismissed ones too; every page counts them."""
    user, at = User(**{"pk": uuid_param("user")}), lambda after: Param(str(after), DateTimeField())
    parts: list[Any] = [
        queryset(user, at)
        .filter(**only)
        .order_by()
        .annotate(entry=Value(kind, CharField()), entered_at=F(time))
        .values_list("entry", "pk", "entered_at")
        for kind, (queryset, time, related, _) in _SOURCES.items()
        if not only or "playbook" in related
    ]
    union: QuerySet[Any] = parts[0].union(*parts[1:], all=True)
    return union.order_by("-entered_at")[: MOST + MOST_SEEN]


ENTRIES = CompiledQuery(_union)
ENTRIES_OF_PLAYBOOK = CompiledQuery(lambda: _union(playbook=uuid_param("playbook")))


def _marks(user: User) -> dict[str, Any]:
    found: dict[str, Any] = user.settings.get("inbox", {})
    return found


def _remember(user: User, **marks: Any) -> None:
    with transaction.atomic():
        row = User.objects.select_for_update(of=("self",), no_key=True).get(pk=user.pk)
        row.settings["inbox"] = user.settings["inbox"] = {**_marks(row), **marks}
        row.save(update_fields=["settings", "updated_at"])


def _reviews(user: User, at: Moment) -> QuerySet[ReviewItem]:
    return ReviewItem.objects.for_user(user).pending().filter(playbook__status="active")


def _failed(user: User, at: Moment) -> QuerySet[EvolutionJob]:
    """The newest evolution of a playbook, if it failed."""
    rows = EvolutionJob.objects.for_user(user).filter(playbook__status="active", training=None)
    return rows.newest().filter(status="failed", completed_at__gt=at(-RECENT))


def _waiting(user: User, at: Moment) -> QuerySet[EvolutionJob]:
    """Evolutions that wait for a limit, or for something that does not pass by itself."""
    rows = EvolutionJob.objects.for_user(user).waiting(at(NOW)).filter(training=None)
    return rows.filter(Q(wait_code__in=LIMITS) | Q(wait_count__gte=PATIENCE))


def _taken_back(user: User, at: Moment) -> QuerySet[Trial]:
    # Exists: so few end so that SQLite, too, should begin with them, not with all playbooks.
    own = Playbook.objects.for_user(user).filter(pk=OuterRef("playbook"))
    return Trial.objects.filter(Exists(own), verdict="worse", ended_at__gt=at(-SOON))


def _expiring(user: User, at: Moment) -> QuerySet[ApiKey]:
    """Keys in use that end soon and have no replacement."""
    rows = ApiKey.objects.counted_for(user, now=at(NOW))
    return rows.filter(expires_at__lt=at(SOON), last_used_at__isnull=False)


_SOURCES: dict[str, tuple[Any, str, Iterable[str], Iterable[str]]] = {
    "review": (_reviews, "created_at", ("playbook", "delta"), ()),
    "evolution": (_failed, "completed_at", ("playbook",), ()),
    "waiting": (_waiting, "created_at", ("playbook",), ()),
    "trial": (
        *(_taken_back, "ended_at", ("playbook", "newest_version", "stable_version")),
        ("newest_version__text", "stable_version__text"),
    ),
    "key": (_expiring, "last_used_at", (), ()),
}
"""By kind: the rows of a user, the field that says when, related rows, and texts left out."""
