"""What an entry of the audit log says, in words for people."""

from accounts.models import AuditEntry


def action_said(action: str) -> str:
    """The service's verb as a sentence's beginning: `revoke_api_key` → Revoke API key."""
    words = action.replace("_", " ").replace("api key", "API key")
    return words[:1].upper() + words[1:]


def detail_said(entry: AuditEntry, *, but: str = "") -> str:
    """The entry's figures in one line, without the one called `but`."""
    named = entry.detail.items()
    kept = {name: value for name, value in named if value not in {"", None} and name != but}
    return ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in kept.items())
