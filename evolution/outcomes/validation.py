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
MAX_KEY_LENGTH = 200
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
    serving_id: str,
    signal: str,
    idempotency_key: str,
    cost_usd: Decimal | None,
) -> Outcome:
    """An unsaved Outcome; raises Invalid with the field, or TooLarge."""
    texts = {
        "task_description": (task_description, settings.MAX_TASK_BYTES),
        "reasoning_trace": (reasoning_trace, settings.MAX_TRACE_BYTES),
        "notes": (notes, settings.MAX_NOTES_BYTES),
    }
    clean = {name: clean_field(name, text, limit) for name, (text, limit) in texts.items()}
    if not clean["task_description"].strip():
        raise Invalid.field("task_description", "Say in a sentence what the task was.")
    clean_choice("outcome", outcome, Outcome.Status.values)
    clean_choice("signal", signal, Outcome.Signal.values)
    key = clean_field("idempotency_key", idempotency_key, MAX_KEY_LENGTH)
    if cost_usd is not None and not 0 <= cost_usd < MAX_COST_USD:
        raise Invalid.field("cost_usd", f"Send 0 to {MAX_COST_USD:,} US dollars.")
    hashed: list[Any] = [clean, outcome, signal, sorted(bullet_ids), serving_id]
    if cost_usd is not None:
        hashed.append(str(cost_usd))
    return Outcome(
        playbook=playbook,
        reported_by=by.user,
        api_key=by.api_key,
        app=by.app,
        client=by.client,
        status=outcome,
        signal=signal,
        cited_bullets=clean_citations(
            bullet_ids,
            partial(_known_ids, playbook),
            missing="This playbook has no {}. Leave out what it does not have.",
        ),
        idempotency_key=key,
        request_hash=_request_hash(hashed),
        cost_usd=cost_usd,
        **clean,
        **_reading_fields(playbook, by, serving_id),
    )


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


def _reading_fields(playbook: Playbook, by: Principal, serving_id: str) -> dict[str, Any]:
    """What was read, and in which trial; the version's text of up to 100 KB is not loaded."""
    if serving_id:
        read = read_serving_token(serving_id, playbook=playbook, principal=by)
        served = {"trial_id": read.trial_id, "unit": read.unit, "arm": read.arm}
        return {"version_id": read.version.pk, "version_assumed": False, **served}
    if playbook.current_version_id is None:
        raise Invalid("This playbook has no version yet.")
    return {"version_id": playbook.current_version_id, "version_assumed": True}


def clean_citations(
    bullet_ids: Sequence[str], known: Callable[[Collection[str]], Collection[str]], *, missing: str
) -> list[str]:
    """The ids that are `known`, in order, once each; brackets and quotes are allowed.

    Raises Invalid with `missing`, whose `{}` becomes the unknown ids.
    """
    if len(bullet_ids) > MAX_CITED:
        raise Invalid.field("bullet_ids", f"Cite at most {MAX_CITED} bullets.")
    cited: dict[str, None] = {}
    for text in bullet_ids:
        ids = find_ids(text)
        if not ids:
            raise Invalid.field("bullet_ids", "Send bullet ids such as `str-00001`.")
        cited |= dict.fromkeys(ids)
    found = known(cited) if cited else ()
    unknown = [bullet for bullet in cited if bullet not in found]
    if unknown:
        raise Invalid.field("bullet_ids", missing.format(", ".join(unknown[:10])))
    return list(cited)


def _known_ids(playbook: Playbook, ids: Collection[str]) -> set[str]:
    rows = Bullet.objects.filter(playbook=playbook, public_id__in=list(ids))
    return set(rows.order_by().values_list("public_id", flat=True))


def _request_hash(fields: Any) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
