"""What an entry of the audit log says, in words for people."""

from accounts.models import AuditEntry

# Verbs of services whose past is not made with -ed, and those that say too little to people.
PAST = {
    **{"set": "set", "reset": "reset", "undo": "undid", "withdraw": "withdrew", "log": "logged"},
    **{"redrive": "redrove", "trigger": "started", "cancel": "cancelled", "hasten": "hurried"},
}
SAID = {"leave_start": "Left the first steps", "register_user": "Registered"}
SPELT = {"api key": "API key", "llm key": "LLM key", "email": "e-mail"}


def action_said(action: str) -> str:
    """The service's verb as what was done: `revoke_api_key` → Revoked API key."""
    if action in SAID:
        return SAID[action]
    verb, *rest = action.split("_")
    words = " ".join([past_of(verb), *rest])
    for plain, spelt in SPELT.items():
        words = words.replace(plain, spelt)
    return words[:1].upper() + words[1:]


def past_of(verb: str) -> str:
    if verb in PAST:
        return PAST[verb]
    if verb.endswith("y"):
        return f"{verb[:-1]}ied"
    return f"{verb}d" if verb.endswith("e") else f"{verb}ed"


def detail_said(entry: AuditEntry, *, but: str = "") -> str:
    """The entry's figures in one line, without the one called `but`."""
    named = entry.detail.items()
    kept = {name: value for name, value in named if value not in {"", None} and name != but}
    return ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in kept.items())
