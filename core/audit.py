"""The audit log: one entry for each change that a person or a key makes."""

from typing import TYPE_CHECKING, Union
from uuid import UUID

from django.db import models

from core.http.request_id import request_id
from core.models import AuditEntry
from core.security.scopes import Principal

if TYPE_CHECKING:
    from django.contrib.auth.models import _User as User


def record(
    *,
    action: str,
    by: Union[Principal, "User", None],
    subject: models.Model,
    owner: Union["User", UUID, None] = None,
    **detail: str | int | bool | None,
) -> None:
    """An entry says that `by` did `action` (the service's verb) to `subject`.

    Call it in the transaction of the change: both are kept, or neither. `by` is None for the
    platform itself; `owner`, whose row it is, is the actor unless given. `detail` carries figures
    and words of ours, never texts, names or secrets: it outlives what people delete.
    """
    who = None if by is None else Principal.of(by)
    key = who.api_key if who else None
    if who is not None and who.app is not None:
        detail |= {"app": who.app.name}
    AuditEntry.objects.create(
        action=action,
        actor_id=who.user.pk if who else None,
        actor=who.user.email if who else "",
        key_prefix=key.prefix if key else "",
        owner_id=_owner_id(owner, who),
        subject=subject._meta.model_name or "",
        subject_id=str(subject.pk),
        detail=detail,
        request_id=request_id.get(),
    )


def _owner_id(owner: Union["User", UUID, None], who: Principal | None) -> UUID | None:
    if owner is None:
        return who.user.pk if who else None
    return owner if isinstance(owner, UUID) else owner.pk
