"""Seals: each version carries a hash over its facts that is chained to the version before.

Each serving_id carries the beginning of the seal, so who rewrites all of it contradicts the logs of
the agents that read it.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Any

from core.errors import Invalid
from playbooks.document.text import text_hash
from playbooks.hooks import hooks
from playbooks.models import Delta, Playbook, Trial, Version
from playbooks.services.serving_tokens import decode_serving

SEALED_DELTA = (
    *("index", "type", "bullet_public_id", "before", "after", "reason", "status"),
    *("reason_code", "outcome_ids", "provenance"),
)


def canonical(facts: Any) -> bytes:
    """The JSON that is hashed: sorted keys, no spaces, UTF-8."""
    return json.dumps(
        facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
    ).encode()


def chain(previous: str, facts: dict[str, Any]) -> str:
    """The seal (hex SHA-256) of a version with these facts; `previous` is the seal before."""
    return hashlib.sha256(previous.encode() + canonical(facts)).hexdigest()


def seal_version(version: Version, deltas: Sequence[Delta]) -> None:
    """Seal a new version with what made it; the last step of its transaction.

    Verdicts that were reached since the version before are sealed with it, also the one that it
    follows from.
    """
    verdicts = Trial.objects.filter(playbook=version.playbook_id, sealed_in=None)
    trials = list(verdicts.exclude(verdict=""))
    outcomes = hooks.outcome_digests(version.job_id) if version.job_id else {}
    version.sealed = facts_of(version, deltas, trials) | {"outcomes": outcomes}
    version.seal = chain(version.parent.seal if version.parent else "", version.sealed)
    rows = Version.objects.filter(pk=version.pk)
    rows.update(sealed=version.sealed, seal=version.seal)
    if trials:
        Trial.objects.filter(pk__in=[trial.pk for trial in trials]).update(sealed_in=version)


def facts_of(version: Version, deltas: Sequence[Delta], trials: Sequence[Trial]) -> dict[str, Any]:
    """What a seal says about a version, but for its outcomes."""
    ordered = sorted(deltas, key=lambda delta: delta.index)
    return {
        "playbook": str(version.playbook_id),
        "version": version.number,
        "text": text_hash(version.text),
        "reason": version.reason,
        "author": version.source or (f"user:{version.author_id}" if version.author_id else ""),
        "job": str(version.job_id or ""),
        "time": version.created_at.astimezone(UTC).isoformat(),
        "deltas": _digest([[getattr(delta, name) for name in SEALED_DELTA] for delta in ordered]),
        "verdicts": [_verdict(trial) for trial in sorted(trials, key=lambda trial: trial.pk)],
    }


def _digest(rows: list[Any]) -> dict[str, Any]:
    return {"count": len(rows), "sha256": hashlib.sha256(canonical(rows)).hexdigest()}


def _verdict(trial: Trial) -> dict[str, Any]:
    return {
        "trial": str(trial.pk),
        "kind": trial.kind,
        "verdict": trial.verdict,
        "reason": trial.reason,
        "stable": [trial.stable_tasks, trial.stable_successes],
        "newest": [trial.newest_tasks, trial.newest_successes],
    }


def check_seals(playbook: Playbook) -> Iterator[str]:
    """What was changed since it was sealed, and where the chain is broken.

    Versions from before there were seals have none.
    """
    previous = ""
    for version in playbook.versions.order_by("number").iterator():
        if not version.sealed:
            if previous:
                yield f"version {version.number} has no seal"
            continue
        if version.seal != chain(previous, version.sealed):
            yield f"version {version.number}: its seal does not follow from the one before"
        trials = list(Trial.objects.filter(sealed_in=version))
        now = facts_of(version, list(version.deltas.all()), trials)
        changed = [name for name in now if not _agrees(version, name, now[name])]
        yield from (
            f"version {version.number}: {name} changed after it was sealed" for name in changed
        )
        gone, others = hooks.changed_outcomes(playbook.pk, version.sealed["outcomes"])
        if gone:
            yield f"version {version.number}: {gone} of its outcomes were deleted"
        if others:
            yield f"version {version.number}: {others} of its outcomes changed after it was sealed"
        previous = version.seal


def _agrees(version: Version, name: str, fact: Any) -> bool:
    was = (version.sealed or {}).get(name)
    is_erased = name == "author" and not fact and str(was).startswith("user:")
    return is_erased or was == fact


def check_serving(token: str) -> str:
    """How the versions contradict a serving_id from an agent's log; empty if they agree."""
    try:
        seal, number = decode_serving(token)[:2]
    except Invalid:
        return f"{token[:50]} is not a serving_id"
    if Version.objects.filter(number=number, seal__startswith=seal).exists():
        return ""
    return f"no version {number} has the seal {seal} of a serving_id: it was rewritten"


def export_seals(*, playbook: Playbook) -> str:
    """JSON Lines: each version's `seal` and the `sealed` facts, oldest first."""
    rows = playbook.versions.exclude(seal="").order_by("number").values("seal", "sealed")
    return "".join(f"{canonical(row).decode()}\n" for row in rows.iterator())
