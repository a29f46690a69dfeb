"""Creating, changing, rotating and revoking API keys."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.hooks import hooks
from accounts.keys import key_format
from accounts.models import ApiKey, User
from core.audit import record
from core.emails import send_security_notice
from core.errors import Conflict, Invalid
from core.security.scopes import KEY_SCOPES, Principal

MAX_NAME = 100
MAX_OVERLAP = timedelta(days=7)
DEFAULT_OVERLAP = timedelta(days=1)


def create_api_key(
    *,
    user: User,
    name: str,
    scopes: Iterable[str],
    playbook_ids: Iterable[UUID | str] = (),
    expires_at: datetime | None = None,
    token: str | None = None,
    notify: bool = True,
    id: UUID | None = None,
) -> tuple[ApiKey, str]:
    """Create a key; its token is returned here and never again.

    With an `id` it is created once, however often the form is sent. Without `expires_at` it
    expires after settings.API_KEY_LIFETIME. `token` is for bootstrap only: a key that the operator
    chose, which does not expire. `notify`: e-mail the user. Raises Invalid, and Conflict, also when
    the user may have no more keys (`hooks.check_api_key_limit`).
    """
    if expires_at is None and token is None:
        expires_at = timezone.now() + default_lifetime()
    generated = key_format.mint() if token is None else _from_operator(token)
    key = ApiKey(
        id=id or uuid4(),
        user=user,
        name=_clean_name(name),
        prefix=generated.prefix,
        digest=generated.digest,
        scopes=_clean_scopes(scopes),
        playbook_ids=_own_playbooks(user, playbook_ids),
        expires_at=_in_future(expires_at),
    )
    with transaction.atomic():
        hooks.check_api_key_limit(user=user)
        _insert_key(key)
        record(action="create_api_key", by=user, subject=key, prefix=key.prefix)
        if notify:
            send_security_notice(user, f"The API key “{key.name}” was created")
    return key, generated.token


def update_api_key(
    *,
    key: ApiKey,
    name: str | None = None,
    scopes: Iterable[str] | None = None,
    playbook_ids: Iterable[UUID | str] | None = None,
) -> ApiKey:
    """Change name, scopes or playbooks of a key; None leaves one unchanged.

    Raises Invalid, Conflict (`key_revoked`).
    """
    with transaction.atomic():
        key = ApiKey.objects.select_for_update(of=("self",)).get(pk=key.pk)
        _require_active(key)
        if name is not None:
            key.name = _clean_name(name)
        if scopes is not None:
            key.scopes = _clean_scopes(scopes)
        if playbook_ids is not None:
            key.playbook_ids = _own_playbooks(key.user, playbook_ids)
        key.save()
        record(action="update_api_key", by=key.user, subject=key, prefix=key.prefix)
    return key


def rotate_api_key(*, key: ApiKey, overlap: timedelta = DEFAULT_OVERLAP) -> tuple[ApiKey, str]:
    """Create a key with the same name, scopes and playbooks; the old one expires after `overlap`.

    Raises Invalid (overlap over 7 days), Conflict (`key_revoked`, `key_rotated`).
    """
    if not timedelta(0) <= overlap <= MAX_OVERLAP:
        raise Invalid.field("overlap_hours", "Choose an overlap of 0 to 168 hours.")
    with transaction.atomic():
        old = ApiKey.objects.select_for_update(of=("self",)).get(pk=key.pk)
        _require_active(old)
        if ApiKey.objects.filter(rotated_from=old).exists():
            raise Conflict("This key was already rotated. Rotate the new one.", code="key_rotated")
        generated, now = key_format.mint(), timezone.now()
        fresh = ApiKey.objects.create(
            user=old.user,
            name=old.name,
            prefix=generated.prefix,
            digest=generated.digest,
            scopes=old.scopes,
            playbook_ids=old.playbook_ids,
            expires_at=now + default_lifetime(),
            rotated_from=old,
        )
        old.expires_at = min(old.expires_at or now + overlap, now + overlap)
        old.save(update_fields=["expires_at", "updated_at"])
        record(
            action="rotate_api_key",
            by=old.user,
            subject=fresh,
            prefix=fresh.prefix,
            replaces=old.prefix,
        )
        send_security_notice(old.user, f"The API key “{old.name}” was rotated")
    return fresh, generated.token


def revoke_api_key(*, key: ApiKey, reason: str, by: Principal | User | None = None) -> ApiKey:
    """Refuse the key from the next request on; revoking twice changes nothing.

    `by` defaults to the key's user.
    """
    with transaction.atomic():
        key = ApiKey.objects.select_for_update(of=("self",)).get(pk=key.pk)
        if key.revoked_at is None:
            key.revoke(reason=reason[:200], now=timezone.now())
            key.save(update_fields=["revoked_at", "revoked_reason", "updated_at"])
            actor, owner = by or key.user, key.user
            record(action="revoke_api_key", by=actor, subject=key, owner=owner, prefix=key.prefix)
    return key


def _from_operator(token: str) -> key_format.GeneratedKey:
    if not key_format.CHOSEN_PATTERN.fullmatch(token):
        raise Invalid.field(
            "token", "Choose a key of 24 to 200 letters, digits, `_` and `-`, without spaces."
        )
    return key_format.GeneratedKey(token, key_format.locate(token), key_format.digest(token))


def _insert_key(key: ApiKey) -> None:
    try:
        with transaction.atomic():
            key.save(force_insert=True)
    except IntegrityError:
        message = "This key already exists; its secret was shown once. Open the form again."
        raise Conflict(message, code="key_exists") from None


def _require_active(key: ApiKey) -> None:
    if key.state != "active":
        message = f"This key is {key.state}. Create a new one."
        raise Conflict(message, code=f"key_{key.state}")


def _clean_name(name: str) -> str:
    name = name.strip()
    if not name or len(name) > MAX_NAME or not name.isprintable():
        raise Invalid.field("name", f"Give the key a name of 1 to {MAX_NAME} characters.")
    return name


def _clean_scopes(scopes: Iterable[str]) -> list[str]:
    wanted = set(scopes)
    if not wanted or wanted - set(KEY_SCOPES):
        known = ", ".join(KEY_SCOPES)
        raise Invalid.field("scopes", f"Choose one or more of: {known}.")
    return [scope.value for scope in KEY_SCOPES if scope in wanted]


def _own_playbooks(user: User, ids: Iterable[UUID | str]) -> list[str]:
    """The ids in the given order. Raises Invalid for one that is not the user's."""
    try:
        wanted = list(dict.fromkeys(UUID(str(pk)) for pk in ids))
    except ValueError:
        raise Invalid.field("playbook_ids", "Send playbook ids (UUIDs).") from None
    found = hooks.playbook_names(user, ids=wanted)
    missing = [pk for pk in wanted if pk not in found]
    if missing:
        raise Invalid.field("playbook_ids", f"No playbook found with ID {missing[0]}.")
    return [str(pk) for pk in wanted]


def _in_future(moment: datetime | None) -> datetime | None:
    now, longest = timezone.now(), settings.API_KEY_MAX_LIFETIME
    if moment is not None and not now < moment <= now + longest:
        raise Invalid.field("expires_at", f"Choose a time in the next {longest.days} days.")
    return moment


def default_lifetime() -> timedelta:
    """How long a key lives for which nobody chose a time."""
    return min(settings.API_KEY_LIFETIME, settings.API_KEY_MAX_LIFETIME)
