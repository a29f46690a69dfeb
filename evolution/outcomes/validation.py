"""Validation of a report: its fields become an unsaved Outcome."""

import hashlib
import json
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from django.conf import settings

from core.errors import Invalid, TooLarge
from core.security.redaction import redact
from core.security.scopes import Principal
from core.text import find_fault
from evolution.models import Outcome
from playbooks.document.text import find_ids
from playbooks.models import Bullet, Playbook
from playbooks.services.serving_tokens import read_serving_token

MAX_CITED = 100
MAX_KEY_LENGTH = MAX_REF_BYTES = 200
MAX_COST_USD = 100_000


def clean_report(
    *,
    playbook: Playbook,
    by: Principal,
    task_description: str,
    outcome: str,
    reasoning_trace: str,
    notes: str,
    bullet_ids: Sequence[str],
    harmful_bullet_ids: Sequence[str],
    serving_id: str,
    signal: str,
    ref: str,
    idempotency_key: str,
    cost_usd: Decimal | None,
) -> tuple[Outcome, list[str]]:
    """An unsaved Outcome, and warnings naming what it does without. Raises Invalid, TooLarge."""
    texts = {
        "task_description": (task_description, settings.MAX_TASK_BYTES),
        "reasoning_trace": (reasoning_trace, settings.MAX_TRACE_BYTES),
        "notes": (notes, settings.MAX_NOTES_BYTES),
        "ref": (ref.strip(), MAX_REF_BYTES),
        "idempotency_key": (idempotency_key, MAX_KEY_LENGTH),
    }
    clean = {name: clean_field(name, text, limit) for name, (text, limit) in texts.items()}
    if not clean["task_description"].strip():
        raise Invalid.field("task_description", "Describe the task in one sentence.")
    clean_choice("outcome", outcome, Outcome.Status.values)
    clean_choice("signal", signal, Outcome.Signal.values)
    if cost_usd is not None and not 0 <= cost_usd < MAX_COST_USD:
        raise Invalid.field("cost_usd", f"Send 0 to {MAX_COST_USD:,} US dollars.")
    cited, harmful, warnings = _citations(playbook, bullet_ids, harmful_bullet_ids)
    served, is_case, lost = _reading_fields(playbook, by, serving_id)
    hashed = [clean, outcome, signal, sorted(bullet_ids), serving_id, str(cost_usd), harmful]
    if harmful:  # every engine reads notes, and this form in them
        clean["notes"] = f"{clean['notes']}\nharmful: {', '.join(harmful)}".strip()
    reporter = {"reported_by": by.user, "api_key": by.api_key, "app": by.app, "client": by.client}
    report = Outcome(
        playbook=playbook,
        **reporter,
        status=outcome,
        signal=signal,
        cited_bullets=cited,
        request_hash=hashlib.sha256(json.dumps(hashed, sort_keys=True).encode()).hexdigest(),
        cost_usd=cost_usd,
        **clean,
        **served,
    )
    report.is_case = is_case
    return report, [*warnings, *lost]


def _citations(
    playbook: Playbook, bullet_ids: Sequence[str], harmful_bullet_ids: Sequence[str]
) -> tuple[list[str], list[str], list[str]]:
    """Every cited bullet, the harmful ones among them, and warnings."""
    known = partial(_known_ids, playbook)
    used, unknown = known_citations(bullet_ids, known)
    harmful, harmful_unknown = known_citations(harmful_bullet_ids, known)
    warnings = [f"bullet_ids: {fault}; left out." for fault in unknown]
    warnings += [f"harmful_bullet_ids: {fault}; left out." for fault in harmful_unknown]
    return list(dict.fromkeys([*used, *harmful])), harmful, warnings


def clean_field(name: str, text: str, limit: int) -> str:
    """The text with credentials redacted (an agent's trace may contain its environment)."""
    if fault := find_fault(text):
        raise Invalid.field(name, fault)
    size = len(text.encode())
    if size > limit:
        message = f"`{name}` has {size} bytes; at most {limit} are allowed. Shorten it."
        raise TooLarge(message, fields={name: [message]})
    return redact(text)


def clean_choice(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise Invalid.field(name, f"Use one of: {', '.join(known)}.")


def _reading_fields(
    playbook: Playbook, by: Principal, serving_id: str
) -> tuple[dict[str, Any], bool, list[str]]:
    """What was read, in which trial, and whether for a case, without the text of the version."""
    warnings = []
    if serving_id:
        try:
            read = read_serving_token(serving_id, playbook=playbook, principal=by)
        except Invalid:
            warnings.append(
                "serving_id: not from one of your reads of this playbook; the current version is"
                " assumed. Copy it unchanged from get_playbook."
            )
        else:
            served = {"trial_id": read.trial_id, "unit": read.unit, "arm": read.arm}
            found = {"version_id": read.version.pk, "version_assumed": False}
            return {**found, **served}, read.is_case, []
    if playbook.current_version_id is None:
        raise Invalid("This playbook has no version yet.")
    return {"version_id": playbook.current_version_id, "version_assumed": True}, False, warnings


def known_citations(
    bullet_ids: Sequence[str], known: Callable[[Collection[str]], Collection[str]]
) -> tuple[list[str], list[str]]:
    """The ids that are `known`, in order, once each; and what is wrong with the others."""
    found = [find_ids(text) for text in bullet_ids[:MAX_CITED]]
    cited = list(dict.fromkeys(bullet for ids in found for bullet in ids))
    existing = known(cited) if cited else ()
    unknown = [bullet for bullet in cited if bullet not in existing]
    faults = [f"this playbook has no {', '.join(unknown[:10])}"] if unknown else []
    if not all(found):
        faults.append(f"{found.count([])} without an id such as `str-00001`")
    if len(bullet_ids) > MAX_CITED:
        faults.append(f"{len(bullet_ids) - MAX_CITED} after the first {MAX_CITED}")
    return [bullet for bullet in cited if bullet in existing], faults


def _known_ids(playbook: Playbook, ids: Collection[str]) -> set[str]:
    rows = Bullet.objects.filter(playbook=playbook, public_id__in=list(ids))
    return set(rows.order_by().values_list("public_id", flat=True))
