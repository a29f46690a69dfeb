"""A playbook as text with the rule to report its outcome, for tools, resources and prompts."""

from collections.abc import Iterable
from uuid import UUID

from playbooks.services.reading import Reading

REPORTING_RULE = (
    "After the task, success or not, call report_outcome once with this playbook_id and "
    "serving_id, the outcome, and as bullet_ids the ids of the bullets that you used or that "
    "misled you."
)


def render_reading(reading: Reading) -> str:
    """The text for clients without structured content: advice, serving id and reporting rule."""
    left_out = describe_omissions(reading)
    return render_playbook_text(
        reading.content, reading.id, reading.version, reading.serving_id, left_out
    )


def describe_omissions(reading: Reading) -> list[str]:
    """What `max_tokens` left out, such as `12 bullets of COMMON MISTAKES TO AVOID`."""
    counts = ((part.bullets, part.section) for part in reading.left_out)
    return [f"{count} bullet{'' if count == 1 else 's'} of {name}" for count, name in counts]


def render_playbook_text(
    content: str, pk: UUID, version: int, serving_id: str, left_out: Iterable[str]
) -> str:
    """The advice, then the ids and the rule for reporting."""
    lines = [
        content or "(No advice yet.)",
        "---",
        f"playbook_id {pk}, version {version}, serving_id {serving_id}",
    ]
    if missing := ", ".join(left_out):
        lines.append(f"Left out to stay within max_tokens: {missing}.")
    return "\n".join([*lines, REPORTING_RULE])
