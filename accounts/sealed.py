"""Every row that holds something sealed, and how it is sealed anew.

Row by row, each in its own transaction: a command that was killed has done a part of the rows,
every row opens with the keys of the list all the while, and the next run does the rest.
"""

from collections.abc import Callable
from typing import Any

from allauth.mfa.models import Authenticator
from django.db import transaction

from accounts.models import LlmKey
from accounts.vault import Unreadable, reseal

__all__ = ["Unreadable", "reseal_everything"]


def reseal_everything(*, after_each: Callable[[], None] = lambda: None) -> int:
    """Every sealed row is under the first key; says how many. Raises Unreadable, naming the row."""
    done = 0
    for model, renew in ((LlmKey, _renew_llm_key), (Authenticator, _renew_factor)):
        for pk in list(model.objects.order_by("pk").values_list("pk", flat=True)):
            done += _one(model, pk, renew)
            after_each()
    return done


def _one(model: Any, pk: Any, renew: Callable[[Any], bool]) -> int:
    with transaction.atomic():
        # Locked: a key that its user sets meanwhile must not be overwritten with the old one.
        row = model.objects.select_for_update().filter(pk=pk).first()
        if row is None:
            return 0
        try:
            return int(renew(row))
        except Unreadable as error:
            raise Unreadable(f"{model._meta.label} {pk}: {error}") from None


def _renew_llm_key(key: LlmKey) -> bool:
    key.sealed = reseal(key.sealed)
    key.save(update_fields=["sealed"])
    return True


def _renew_factor(factor: Authenticator) -> bool:
    """An app keeps `secret`, recovery codes keep `seed`; passkeys keep nothing secret."""
    sealed = [name for name in ("secret", "seed") if name in factor.data]
    for name in sealed:
        factor.data[name] = reseal(factor.data[name])
    if sealed:
        factor.save(update_fields=["data"])
    return bool(sealed)
