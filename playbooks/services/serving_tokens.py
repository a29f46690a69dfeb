"""Serving tokens: signed, opaque proof of which version an agent read, and in which trial."""

from dataclasses import dataclass
from uuid import UUID

from django.core import signing
from django.db.models import PositiveIntegerField

from core.errors import Invalid
from core.security.scopes import Principal
from core.sql.compiled_queries import CompiledQuery, Param, uuid_param
from playbooks.models import Playbook, Version
from playbooks.trials.arms import Assignment

SALT = "playbooks.serving"
LENGTH_LIMIT = 500
SERVED_VERSION = CompiledQuery(
    lambda: Version.objects.defer("text").filter(
        playbook=uuid_param("playbook"), number=Param("number", PositiveIntegerField())
    )
)


@dataclass(frozen=True)
class Serving:
    """What was read; `trial_id` is None, `unit` and `arm` empty, where no coin was tossed."""

    version: Version
    trial_id: UUID | None = None
    unit: str = ""
    arm: str = ""


def sign_serving_token(
    *, version: Version, principal: Principal, assignment: Assignment | None = None
) -> str:
    """A signed token of the version that was read, the credential, the trial and the time."""
    key = principal.api_key
    claims = {
        "p": str(version.playbook_id),
        "v": version.number,
        "u": str(principal.user.pk),
        "k": str(key.pk) if key else None,
    }
    if assignment is not None and assignment.unit:
        claims["t"] = [assignment.trial.pk.hex, assignment.unit, assignment.arm]
    return signing.dumps(claims, salt=SALT)


def read_serving_token(token: str, *, playbook: Playbook, principal: Principal) -> Serving:
    """What was read; Invalid for another playbook, another user, or a forgery.

    Another key of the same user may report what this one read. A serving does not expire: a task
    may take days, and what was read does not change.
    """
    refusal = Invalid.field("serving_id", "Send the serving_id of your own reading, or none.")
    if len(token) > LENGTH_LIMIT or not token.isascii():
        raise refusal
    try:
        claims = signing.loads(token, salt=SALT)
    except signing.BadSignature:
        raise refusal from None
    if (claims["p"], claims["u"]) != (str(playbook.pk), str(principal.user.pk)):
        raise refusal
    version = SERVED_VERSION.first(playbook=playbook.pk, number=claims["v"])
    if version is None:
        raise refusal
    if "t" not in claims:
        return Serving(version)
    trial, unit, arm = claims["t"]
    return Serving(version, UUID(trial), unit, arm)
