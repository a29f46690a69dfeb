"""Writing the audit log: one entry for each change that a user or an API key makes."""

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
    """Record that `by` did `action` (the service's verb) to `subject`.

    Call it in the transaction of the change: both are kept, or neither. `by` is None for the
    platform itself; `owner`, the user whose row it is, defaults to the actor. `detail` holds
    figures and constants, never users' texts, names or secrets: it outlives what they delete.
    """
    principal = None if by is None else Principal.of(by)
    key = principal.api_key if principal else None
    if principal is not None and principal.app is not None:
        detail |= {"app": principal.app.name}
    AuditEntry.objects.create(
        action=action,
        actor_id=principal.user.pk if principal else None,
        actor=principal.user.email if principal else "",
        key_prefix=key.prefix if key else "",
        owner_id=_owner_id(owner, principal),
        subject=subject._meta.model_name or "",
        subject_id=str(subject.pk),
        detail=detail,
        request_id=request_id.get(),
    )


def _owner_id(owner: Union["User", UUID, None], actor: Principal | None) -> UUID | None:
    if owner is None:
        return actor.user.pk if actor else None
    return owner if isinstance(owner, UUID) else owner.pk
