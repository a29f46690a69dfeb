"""Serving tokens: signed, opaque proof of which version an agent read, and in which trial."""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.core.signing import b64_decode, b64_encode
from django.db.models import PositiveIntegerField
from django.utils.crypto import constant_time_compare, salted_hmac

from core.errors import Invalid
from core.security.scopes import Principal
from core.sql.compiled_queries import CompiledQuery, Param, uuid_param
from playbooks.models import Arm, Playbook, Trial, Version
from playbooks.trials.arms import UNIT_LENGTH, Assignment

SALT = "playbooks.serving"
MAX_NUMBER = 2**31 - 1
MAC_BYTES, UNIT_BYTES = 9, UNIT_LENGTH // 2
ARMS = ("", Arm.STABLE, Arm.NEWEST)
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
    """A signed token of the version that was read, the user and the trial: 18 or 35 characters.

    Models retype it: what the reader of a token knows anyway (playbook, user, trials) is signed
    and not sent.
    """
    payload, trial = version.number.to_bytes(4, "big"), None
    if assignment is not None and assignment.unit:
        arm = ARMS.index(Arm(assignment.arm)).to_bytes(1, "big")
        payload, trial = payload + arm + bytes.fromhex(assignment.unit), assignment.trial.pk
    mac = _mac(settings.SECRET_KEY, payload, version.playbook_id, principal, trial)
    return b64_encode(payload + mac).decode()


def _mac(
    secret: str, payload: bytes, playbook: UUID, principal: Principal, trial: UUID | None
) -> bytes:
    signed = f"{payload.hex()}:{playbook}:{principal.user.pk}:{trial or ''}"
    return salted_hmac(SALT, signed, secret, algorithm="sha256").digest()[:MAC_BYTES]


def _possible_trials(playbook: Playbook) -> Iterator[UUID]:
    """The open one, which costs no query, then those that have ended."""
    if playbook.open_trial_id is not None:
        yield playbook.open_trial_id
    yield from Trial.objects.filter(playbook=playbook).values_list("pk", flat=True)


def read_serving_token(token: str, *, playbook: Playbook, principal: Principal) -> Serving:
    """What was read; Invalid for another playbook, another user, or a forgery.

    Another key of the same user may report what this one read. A serving does not expire: a task
    may take days, and what was read does not change.
    """
    refusal = Invalid.field("serving_id", "Send the serving_id of your own reading, or none.")
    try:
        raw = b64_decode(token[:50].strip(" `'\"\n").encode("ascii"))
    except ValueError:
        raise refusal from None
    payload, mac = raw[:-MAC_BYTES], raw[-MAC_BYTES:]
    number = int.from_bytes(payload[:4], "big")
    if len(payload) not in {4, 5 + UNIT_BYTES} or not 0 < number <= MAX_NUMBER:
        raise refusal
    version = SERVED_VERSION.first(playbook=playbook.pk, number=number)
    if version is None:
        raise refusal
    for trial in _possible_trials(playbook) if len(payload) > 4 else (None,):
        for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
            if constant_time_compare(mac, _mac(secret, payload, playbook.pk, principal, trial)):
                arm = ARMS[payload[4]] if trial else ""
                return Serving(version, trial, payload[5:].hex(), arm)
    raise refusal
