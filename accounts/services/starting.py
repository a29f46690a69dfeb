"""What becomes of a new account's checklist."""

from django.db import transaction

from accounts.audit import record
from accounts.models import User


def leave_start(*, user: User, how: str) -> User:
    """The checklist no longer comes by itself; `how` is done or dismissed, and the first stays."""
    with transaction.atomic():
        user = User.objects.select_for_update(of=("self",), no_key=True).get(pk=user.pk)
        if "start" not in user.settings:
            user.settings["start"] = how
            user.save(update_fields=["settings", "updated_at"])
            record(action="leave_start", by=user, subject=user, how=how)
    return user
