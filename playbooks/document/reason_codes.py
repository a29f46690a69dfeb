"""Why an operation changed nothing, in a sentence for people; the codes come from judge.py."""

REASONS = {
    "awaits_review": "This text waits for a person's review already.",
    "declined": "A person declined this text before.",
    "held_all": "Held for review: this playbook takes no machine-made text unseen.",
    "held_cap": "Held for review: its source taught this playbook a lot today.",
    "held_command": "Held for review: it contains a shell command.",
    "held_credential": "Held for review: it contains what looks like a password or a key.",
    "held_instruction": "Held for review: it reads like an order to agents, not like advice.",
    "held_url": "Held for review: it contains an address or a link.",
    "bad_content": "The text is empty, or longer than 2,000 characters.",
    "bad_tag": "The vote is neither helpful, harmful nor neutral.",
    "budget": "Retired because the playbook is over its budget.",
    "conflict": "Somebody changed this bullet meanwhile. Look at its text now, then try again.",
    "duplicate_of": "The same advice is there already.",
    "merged": "This bullet was merged into another one.",
    "missing_reason": "No reason was given.",
    "over_budget": "The playbook has no room for it. Retire a bullet or raise the token budget.",
    "pinned": "The bullet is pinned.",
    "retired": "This bullet is retired. Restore it first.",
    "retired_duplicate": "The same advice was retired before. Restore that bullet instead.",
    "same_text": "Nothing changed: the text is the same.",
    "same_pin": "Nothing changed: it was so already.",
    "same_vote": "Nothing changed: this vote was there already.",
    "similar_to": "Nearly the same advice is there already.",
    "too_few": "A merge needs at least two bullets.",
    "too_little_evidence": "Too few votes speak against it.",
    "too_many_adds": "More new bullets than the reported outcomes can justify.",
    "unknown_id": "This playbook has no such bullet.",
    "unknown_section": "This playbook has no such section.",
    "unsupported_op": "There is no such operation.",
    "already_active": "This bullet is active already.",
}


def reason_text(code: str) -> str:
    """The sentence for a reason code; an unknown code as words."""
    return REASONS.get(code) or code.replace("_", " ").capitalize()
