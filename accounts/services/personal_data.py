"""Export and deletion of an account with all of its data."""

import json
import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import IO, Any

from allauth.usersessions.models import UserSession
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.core.serializers.json import DjangoJSONEncoder
from django.db import OperationalError, connection, transaction
from django.db.models import CASCADE, BinaryField, ForeignKey, ForeignObjectRel, Model, Q, QuerySet
from oauth2_provider.models import Application

from accounts.hooks import hooks
from accounts.models import ConnectedApp, User
from core.audit import record
from core.errors import Conflict
from core.models import AuditEntry
from core.security.redaction import SECRET_FIELDS
from core.security.scopes import Principal

Paths = dict[type[Model], list[str]]
MAX_TRIES, DEADLOCK = 4, "40P01"
README = """Everything ACE Platform stores for your account: one JSON file per table.
Secrets are left out: digests of passwords and keys, encrypted keys.
"""


def export_account(*, user: User, by: Principal | None = None) -> bytes:
    """A ZIP file of the user's data: a JSON list for each table, without secrets.

    `by` is the user unless staff takes it on their behalf.
    """
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.txt", README)
        # Usage outlives its account, so no cascade leads to it.
        for rows in (*personal_rows(user), user.usage_records.order_by("pk")):
            with archive.open(f"{rows.model._meta.label_lower}.json", "w") as part:
                _write_list(part, rows.iterator(chunk_size=500))
    record(action="export_account", by=by or user, subject=user, owner=user)
    return file.getvalue()


def delete_account(*, user: User, by: Principal | None = None) -> None:
    """Delete the user and all their rows; the audit log keeps ids without the e-mail.

    `by` is the user unless staff does it for them. Raises Conflict for the last superuser, without
    whom nobody could run the platform.
    """
    for _ in range(MAX_TRIES - 1):
        try:
            return _delete(user, by)
        except OperationalError as error:
            # A running job locks a playbook, then its owner; this locks them in the other order,
            # and the database aborted it. Nothing is half done, so try again.
            is_deadlock = getattr(error.__cause__, "sqlstate", "") == DEADLOCK
            if not is_deadlock or connection.in_atomic_block:
                raise
    return _delete(user, by)


def _delete(user: User, by: Principal | None) -> None:
    with transaction.atomic():
        if user.is_superuser:
            # Lock all superusers in one order, or two deleted at once would each count the other.
            superusers = User.objects.filter(is_superuser=True).order_by("pk")
            list(superusers.select_for_update().values_list("pk", flat=True))
        user = User.objects.select_for_update().get(pk=user.pk)
        others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
        if user.is_superuser and not others.exists():
            raise Conflict("The last superuser cannot be deleted.", code="last_superuser")
        record(action="delete_account", by=by or user, subject=user, owner=user)
        keys = UserSession.objects.filter(user_id=user.pk).values_list("session_key", flat=True)
        Session.objects.filter(session_key__in=list(keys)).delete()
        _anonymize_admin_history(user)
        _delete_own_clients(user)
        hooks.keep_used_quota(user=user)
        user_id = user.pk
        user.delete()
        AuditEntry.objects.anonymize(user_id)


def _write_list(part: IO[bytes], rows: Any) -> None:
    before = "["
    for row in rows:
        if isinstance(row, AuditEntry) and row.actor_id != row.owner_id:
            row.actor, row.actor_id = "", None  # users do not learn which member of staff it was
        text = json.dumps(row_as_dict(row), cls=DjangoJSONEncoder, ensure_ascii=False)
        part.write(f"{before}\n{text}".encode())
        before = ","
    part.write(f"{before if before == '[' else ''}\n]\n".encode())


def _delete_own_clients(user: User) -> None:
    """Delete clients that registered themselves and that only this user connected."""
    others = ConnectedApp.objects.exclude(user=user).values("application")
    own = Application.objects.filter(connections__user=user).exclude(pk__in=others)
    own.filter(registration_source=Application.RegistrationSource.DCR).delete()


def _anonymize_admin_history(user: User) -> None:
    """Blank the names of rows in Django's admin history: e-mails, titles of playbooks."""
    for rows in personal_rows(user):
        kind = ContentType.objects.get_for_model(rows.model)
        ids = [str(pk) for pk in rows.values_list("pk", flat=True)]
        entries = LogEntry.objects.filter(content_type=kind, object_id__in=ids)
        entries.update(object_repr="(deleted)", change_message="")


def personal_rows(user: User) -> Iterator[QuerySet[Any]]:
    """One queryset for each table with rows of the user, the user's own row first."""
    for model, paths in _paths().items():
        found = Q()
        for path in paths:
            found |= Q(**{path: user.pk})
        rows = model._base_manager.filter(found).order_by("pk")
        # By key, not by join: a row that two paths reach is listed once.
        yield model._base_manager.filter(pk__in=rows.values("pk")).order_by("pk")
    yield AuditEntry.objects.for_user(user).order_by("pk")


def row_as_dict(row: Model) -> dict[str, Any]:
    """The columns of a row, without secrets."""
    return {
        field.attname: getattr(row, field.attname)
        for field in row._meta.concrete_fields
        if field.name not in SECRET_FIELDS and not isinstance(field, BinaryField)
    }


def _paths() -> Paths:
    """For each model, the paths of cascading foreign keys that lead to the user."""
    found: Paths = {User: ["pk"]}
    _walk(User, "", (User,), found)
    return found


def _walk(model: type[Model], path: str, seen: tuple[type[Model], ...], found: Paths) -> None:
    for relation in model._meta.get_fields(include_hidden=True):
        if not isinstance(relation, ForeignObjectRel) or relation.on_delete is not CASCADE:
            continue
        key, child = relation.field, relation.related_model
        if not isinstance(key, ForeignKey) or child in seen:
            continue
        here = f"{key.name}__{path}" if path else key.name
        found.setdefault(child, []).append(here)
        _walk(child, here, (*seen, child), found)
