"""Template filters for bullets, deltas, diffs, votes and rates."""

from collections.abc import Mapping
from typing import Any

from django import template

from accounts.models import User
from playbooks.document.diff import Diff, DiffSegment, diff_words
from playbooks.document.reason_codes import reason_text
from playbooks.models import Delta
from playbooks.models.versions import AuthoredModel, credential_text
from playbooks.services.history import VERBS, change_text

register = template.Library()
register.filter("reason_text", reason_text)
register.filter("change_text", change_text)

NAMES = {"removed": "retired", "updated": "changed", "merged": "merged away"}


@register.filter
def delta_text(delta: Delta) -> str:
    """What was done, or what was requested and rejected."""
    if delta.status == Delta.Status.APPLIED:
        return change_text(delta)
    return VERBS.get(delta.type, ("Unknown operation",))[0]


FATES = {
    "applied": "Learned as",
    "noop": "Same as",
    "held": "Needs review.",
    "rejected": "Rejected.",
}


@register.filter
def fate_text(delta: Delta) -> str:
    """What became of a lesson: “Learned as str-00031”; of another edit what it did."""
    end = delta.end
    if delta.type != Delta.Type.ADD and end == Delta.Status.APPLIED:
        return change_text(delta)
    bullet = delta.bullet_public_id if end in {"applied", "noop"} else ""
    fate = "Not added." if end == "noop" and not bullet else FATES[end]
    return f"{fate} {bullet}".strip()


@register.filter
def vote_text(delta: Delta) -> str:
    """“helpful 1 → 2”, or that it counted neither way."""
    before, after = delta.before or {}, delta.after or {}
    changed = [
        f"{name} {before.get(name, 0)} → {after[name]}"
        for name in ("helpful", "harmful")
        if after.get(name, 0) != before.get(name, 0)
    ]
    return ", ".join(changed) or reason_text(delta.reason_code) or "neutral: used, no effect"


@register.filter
def word_diff(delta: Delta) -> tuple[DiffSegment, ...]:
    """The words that an applied change removed and added."""
    before, after = delta.before or {}, delta.after or {}
    return diff_words(before.get("content", ""), after.get("content", ""))


@register.filter
def status_text(delta: Delta) -> str:
    names = {"noop": "no change", "held": "needs review"}
    return names.get(delta.status, delta.get_status_display().lower())


@register.filter
def summary_text(summary: Mapping[str, int]) -> str:
    """`{"added": 2, "tagged": 5}` as “2 added, 5 votes”: several may be on one bullet."""
    names = NAMES | {"tagged": "vote" if summary.get("tagged") == 1 else "votes"}
    return ", ".join(f"{count} {names.get(name, name)}" for name, count in summary.items() if count)


@register.filter
def diff_text(diff: Diff) -> str:
    """“2 added, 1 voted on.”; what there is none of is left out."""
    names = {"added": "added", "removed": "removed", "changed": "changed", "moved": "moved"}
    counts = {label: len(getattr(diff, name)) for name, label in names.items()}
    counts["voted on"] = len(diff.counted)
    parts = [f"{count:,} {label}" for label, count in counts.items() if count]
    return f"{', '.join(parts)}." if parts else "No differences."


@register.filter
def is_more_than_votes(summary: Mapping[str, int]) -> bool:
    """True for a version that changed texts, sections or pins, and not counters alone."""
    return any(count for name, count in summary.items() if name != "tagged")


VOTERS = {"rules": "rules engine", "reflector": "the model"}


@register.filter
def source_text(source: str, user: User) -> str:
    """The source of a vote: a person, a key or app, or a part of the engine."""
    if source == f"user:{user.pk}":
        return "you"
    if source.startswith(("key:", "app:")):
        return "an API key" if source.startswith("key:") else "an app"
    return "a person" if source.startswith("user:") else VOTERS.get(source, source)


@register.filter
def author_name(row: AuthoredModel, user: User) -> str:
    """Who made a version or change: a key or app, "you", or staff, whose names stay hidden."""
    if row.source:
        return credential_text(row.source, row.source_name)
    if row.author_id is None:
        return ""
    return "you" if row.author_id == user.pk else "staff"


@register.filter
def percent(rate: float) -> str:
    """0.625 as “63%”; a rate that is not quite none or all is never shown as 0 or 100."""
    whole = round(100 * rate)
    if 0 < rate < 1:
        whole = min(99, max(1, whole))
    return f"{whole}%"


@register.filter
def points(difference: float) -> str:
    """0.38 as “+38”, -0.05 as “−5”: the points between two rates."""
    whole = round(100 * difference)
    return f"{'−' if whole < 0 else '+' if whole else ''}{abs(whole)}"


@register.filter
def leading_space(text: str) -> str:
    """The space that a segment begins with, which is not coloured."""
    return text[: len(text) - len(text.lstrip())]


@register.filter
def strip_leading_space(text: str) -> str:
    return text.lstrip()


@register.filter
def of(values: Mapping[Any, Any], key: Any) -> Any:
    """The value of a key that is a variable; empty for an unknown one."""
    return values.get(key, "") if values else ""
