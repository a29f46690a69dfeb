"""The coin: which arm of an open trial a reading gets. Nothing is written."""

import hashlib
import secrets
from dataclasses import dataclass

from django.utils.crypto import salted_hmac

from core.errors import Invalid
from core.sql.compiled_queries import CompiledQuery, uuid_param
from playbooks.models import Arm, Playbook, Trial

SALT = "playbooks.trials.coin"
UNIT_LENGTH = 14
MAX_TASK_KEY = 200
OPEN_TRIAL = CompiledQuery(
    lambda: (
        Trial.objects.open()
        .select_related("stable_version")
        .filter(playbook=uuid_param("playbook"))
    )
)


@dataclass(frozen=True)
class Assignment:
    """The arm of one reading, the unit: reports of one unit count once."""

    trial: Trial
    unit: str
    arm: str
    is_case: bool = False

    @property
    def is_stable(self) -> bool:
        return self.arm == Arm.STABLE


def assign_arm(playbook: Playbook, *, task_key: str = "") -> Assignment | None:
    """The arm that this reading gets; None without an open trial, which costs no query.

    All readings with one `task_key` get the same arm. While harm is being undone everybody gets
    the stable arm, under no unit. Raises Invalid for a key that is too long.
    """
    if len(task_key) > MAX_TASK_KEY:
        raise Invalid.field("task_key", f"Use at most {MAX_TASK_KEY} characters.")
    if playbook.open_trial_id is None:
        return None
    trial = OPEN_TRIAL.first(playbook=playbook.pk)
    if trial is None:
        return None
    if not trial.is_running:
        return Assignment(trial, "", Arm.STABLE)
    text = f"{trial.pk}\n{task_key}" if task_key else secrets.token_hex(UNIT_LENGTH)
    unit = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:UNIT_LENGTH]
    is_stable = _coin(trial, unit) < trial.control_share
    return Assignment(trial, unit, Arm.STABLE if is_stable else Arm.NEWEST)


def _coin(trial: Trial, unit: str) -> float:
    """0 to 1, uniform; whoever chooses a `task_key` cannot foresee it."""
    drawn = salted_hmac(SALT, f"{trial.pk}:{unit}", algorithm="sha256").digest()
    return int.from_bytes(drawn[:8], "big") / 2**64
