"""Serving tokens: signed, opaque proof of which version an agent read, and in which trial."""

import re
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
from playbooks.trials import UNIT_LENGTH, Assignment

SALT = "playbooks.serving"
NEWEST, CASE = 1 << 23, 1 << 22
"""Bits beside the version's number: the newest arm of a trial was read; to answer a case."""
WITNESS, UNIT_BYTES = 16, UNIT_LENGTH // 2
SERVING_ID = re.compile(r"([0-9a-f]{16})([\w-]{16}|[\w-]{24})", re.ASCII)
SERVED_VERSION = CompiledQuery(
    lambda: Version.objects.defer("text", "sealed").filter(
        playbook=uuid_param("playbook"), number=Param("number", PositiveIntegerField())
    )
)


@dataclass(frozen=True)
class Serving:
    """What was read; `trial_id` is None, `unit` and `arm` empty, where no coin was tossed.

    `is_case`: it was read to answer a case, so its report is no outcome.
    """

    version: Version
    trial_id: UUID | None = None
    unit: str = ""
    arm: str = ""
    is_case: bool = False


def sign_serving_token(
    *, version: Version, principal: Principal, assignment: Assignment | None = None
) -> str:
    """A signed token of the version that was read, the user and the trial: 32 or 40 characters.

    It begins with 16 hex digits of the version's seal. Models retype it: what the reader of a token
    knows anyway (playbook, user, trials) is signed and not sent.
    """
    number, trial, unit = version.number, None, b""
    if assignment is not None and assignment.unit:
        number += NEWEST if assignment.arm == Arm.NEWEST else 0
        number += CASE if assignment.is_case else 0
        trial, unit = assignment.trial.pk, bytes.fromhex(assignment.unit)
    payload = number.to_bytes(3, "big") + unit
    mac = _mac(settings.SECRET_KEY, version, payload, principal, trial)
    return f"{_witness(version)}{b64_encode(payload + mac).decode()}"


def _witness(version: Version) -> str:
    return version.seal[:WITNESS].ljust(WITNESS, "0")


def _mac(
    secret: str, version: Version, payload: bytes, principal: Principal, trial: UUID | None
) -> bytes:
    where = f"{_witness(version)}:{payload.hex()}:{version.playbook_id}"
    signed = f"{where}:{principal.user.pk}:{trial or ''}"
    digest = salted_hmac(SALT, signed, secret, algorithm="sha256").digest()
    return digest[: 9 if trial is None else 8]


def _possible_trials(playbook: Playbook) -> Iterator[UUID]:
    """The open one, which costs no query, then those that have ended."""
    if playbook.open_trial_id is not None:
        yield playbook.open_trial_id
    yield from Trial.objects.filter(playbook=playbook).values_list("pk", flat=True)


def decode_serving(token: str) -> tuple[str, int, bytes, bytes]:
    """The digits of the seal, the version's number, the payload and its MAC; Invalid for others.

    Nothing is proven by it.
    """
    found = SERVING_ID.fullmatch(token[:60].strip(" `'\"\n"))
    if found is None:
        raise Invalid.field("serving_id", "Send the serving_id of your own read, or leave it out.")
    raw = b64_decode(found[2].encode())
    size = 3 if len(raw) == 12 else 3 + UNIT_BYTES
    return found[1], int.from_bytes(raw[:3], "big") % CASE, raw[:size], raw[size:]


def read_serving_token(token: str, *, playbook: Playbook, principal: Principal) -> Serving:
    """What was read; Invalid for another playbook, another user, or a forgery.

    Another key of the same user may report what this one read. A serving does not expire: a task
    may take days, and what was read does not change.
    """
    _, number, payload, mac = decode_serving(token)
    version = SERVED_VERSION.first(playbook=playbook.pk, number=number)
    for trial in _possible_trials(playbook) if len(payload) > 3 else (None,):
        for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
            if version is not None and constant_time_compare(
                mac, _mac(secret, version, payload, principal, trial)
            ):
                if trial is None:
                    return Serving(version)
                bits = int.from_bytes(payload[:3], "big")
                arm = Arm.NEWEST if bits & NEWEST else Arm.STABLE
                return Serving(version, trial, payload[3:].hex(), arm, bool(bits & CASE))
    raise Invalid.field("serving_id", "Send the serving_id of your own read, or leave it out.")
