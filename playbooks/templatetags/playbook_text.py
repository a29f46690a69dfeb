"""Template filters for what playbooks are made of."""

from collections.abc import Mapping

from django import template

from playbooks.models import Delta
from playbooks.reasons import reason_text

register = template.Library()
register.filter("reason_text", reason_text)

DONE = {
    "ADD": "Added",
    "UPDATE": "Changed",
    "TAG": "Voted on",
    "REMOVE": "Retired",
    "MERGE": "Merged",
    "RESTORE": "Restored",
    "PIN": "Pinned",
}
WISHED = {
    "ADD": "Add",
    "UPDATE": "Change",
    "TAG": "Vote on",
    "REMOVE": "Retire",
    "MERGE": "Merge",
    "RESTORE": "Restore",
    "PIN": "Pin",
}


@register.filter
def delta_text(delta: Delta) -> str:
    """What was done, or what was wished and refused."""
    if delta.status != Delta.Status.APPLIED:
        return WISHED.get(delta.type, "Unknown operation")
    if delta.type == Delta.Type.PIN and not (delta.after or {}).get("pinned"):
        return "Unpinned"
    return DONE.get(delta.type, delta.type)


@register.filter
def status_text(delta: Delta) -> str:
    return "no change" if delta.status == Delta.Status.NOOP else delta.get_status_display().lower()


@register.filter
def summary_text(summary: Mapping[str, int]) -> str:
    """`{"added": 2, "tagged": 1}` as “2 added, 1 tagged”."""
    return ", ".join(f"{count} {name}" for name, count in summary.items() if count)
