"""All that a person has here: taken along as a file, or gone for good."""

import json
import zipfile
from datetime import timedelta
from io import BytesIO
from typing import IO, Any

from allauth.usersessions.models import UserSession
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.core.serializers.json import DjangoJSONEncoder
from django.db import OperationalError, connection, transaction
from django.utils import timezone
from oauth2_provider.models import Application

from accounts.audit import record
from accounts.belongings import as_json, rows_of
from accounts.errors import Conflict
from accounts.limits import forget_used_up_rates
from accounts.lockout import forget_old_attempts
from accounts.models import AuditEntry, ConnectedApp, RefreshToken, StoredAnswer, User
from accounts.scopes import Principal

ANSWERS_KEPT = timedelta(hours=24)
TRIES, DEADLOCK = 4, "40P01"
README = """Everything that ACE Platform keeps of your account: one JSON file for each kind of row.
Left out are secrets (digests of passwords and keys, sealed keys): only an attacker needs them.
"""


def export_account(*, user: User) -> bytes:
    """A ZIP file of everything of the user: one JSON list for each table, secrets left out."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.txt", README)
        for rows in rows_of(user):
            with archive.open(f"{rows.model._meta.label_lower}.json", "w") as part:
                _write_list(part, rows.iterator(chunk_size=500))
    record(action="export_account", by=user, subject=user)
    return file.getvalue()


def delete_account(*, user: User, by: Principal | None = None) -> None:
    """The user and every row of theirs are gone; the audit log keeps ids without the e-mail.

    `by` is the user unless staff does it for them. Raises Conflict for the last superuser: nobody
    could run the platform any more.
    """
    for _ in range(TRIES - 1):
        try:
            return _delete(user, by)
        except OperationalError as error:
            # Work under way holds a playbook and wants its owner, we the other way round: the
            # database has ended one of both. Nothing is half done, and the work is over then.
            is_deadlock = getattr(error.__cause__, "sqlstate", "") == DEADLOCK
            if not is_deadlock or connection.in_atomic_block:
                raise
    return _delete(user, by)


def _delete(user: User, by: Principal | None) -> None:
    with transaction.atomic():
        if user.is_superuser:
            # All of them, in one order: of two who go at once each would count on the other.
            alike = User.objects.filter(is_superuser=True).order_by("pk")
            list(alike.select_for_update().values_list("pk", flat=True))
        user = User.objects.select_for_update().get(pk=user.pk)
        others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
        if user.is_superuser and not others.exists():
            raise Conflict("The last superuser cannot be deleted.", code="last_superuser")
        record(action="delete_account", by=by or user, subject=user, owner=user)
        gone = user.pk
        keys = UserSession.objects.filter(user_id=user.pk).values_list("session_key", flat=True)
        Session.objects.filter(session_key__in=list(keys)).delete()
        _forget_names(user)
        _forget_programs(user)
        user.delete()
        AuditEntry.objects.forget(gone)


def forget_what_is_over() -> int:
    """Answers, counters, delays, sign-ins and sessions that nothing follows from are gone."""
    now = timezone.now()
    gone: int = StoredAnswer.objects.filter(created_at__lt=now - ANSWERS_KEPT).delete()[0]
    gone += RefreshToken.objects.filter(expires_at__lt=now - timedelta(days=1)).delete()[0]
    gone += Session.objects.filter(expire_date__lt=now).delete()[0]
    alive = Session.objects.values("session_key")
    gone += UserSession.objects.exclude(session_key__in=alive).delete()[0]
    forget_used_up_rates()
    return gone + forget_old_attempts()


def _write_list(part: IO[bytes], rows: Any) -> None:
    before = "["
    for row in rows:
        text = json.dumps(as_json(row), cls=DjangoJSONEncoder, ensure_ascii=False)
        part.write(f"{before}\n{text}".encode())
        before = ","
    part.write(f"{before if before == '[' else ''}\n]\n".encode())


def _forget_programs(user: User) -> None:
    """A program that registered itself and that nobody else has let in was the user's own."""
    others = ConnectedApp.objects.exclude(user=user).values("application")
    own = Application.objects.filter(connections__user=user).exclude(pk__in=others)
    own.filter(registration_source=Application.RegistrationSource.DCR).delete()


def _forget_names(user: User) -> None:
    """The admin's own history names rows by their text: the e-mail, titles of playbooks."""
    for rows in rows_of(user):
        kind = ContentType.objects.get_for_model(rows.model)
        named = LogEntry.objects.filter(content_type=kind, object_id__in=_ids(rows))
        named.update(object_repr="(deleted)", change_message="")


def _ids(rows: Any) -> list[str]:
    return [str(pk) for pk in rows.values_list("pk", flat=True)]
