"""Sentences for the reason codes of operations that changed nothing or were held."""

HELD_FULL, HELD_REWRITE = "held_full", "held_rewrite"
REASONS = {
    "awaits_review": "This text is already waiting for review.",
    "declined": "This text was declined before.",
    "held_all": "This playbook reviews every suggestion.",
    "held_cap": "Its source changed this playbook a lot today.",
    "held_command": "It contains a shell command.",
    "held_credential": "It contains what looks like a password or a key.",
    HELD_FULL: "The playbook is full. Retire a bullet or raise the token budget, then approve it.",
    "held_instruction": "It reads like an instruction to agents.",
    HELD_REWRITE: "It rewords proven advice.",
    "held_leak": "It contains the answer to a case.",
    "held_url": "It contains a link or an address.",
    "bad_content": "The text is empty, or longer than 2,000 characters.",
    "bad_tag": "The vote is neither helpful, harmful nor neutral.",
    "budget": "Retired because the playbook is over its budget.",
    "collapse_guard": "This would have removed more than 20% of the playbook within a week.",
    "conflict": "This bullet was changed in the meantime. Check its current text, then try again.",
    "duplicate_of": "This advice already exists.",
    "merged": "This bullet was merged into another one.",
    "needs_person": "Its text needs review. A person can restore it on its page.",
    "missing_reason": "No reason was given.",
    "over_budget": "The playbook is full. Retire a bullet or raise the token budget.",
    "own_lesson": "Counted as neutral: a source can’t vote on its own lesson.",
    "pinned": "The bullet is pinned.",
    "retired": "This bullet is retired. Restore it first.",
    "retired_duplicate": "The same advice was retired before. Restore that bullet instead.",
    "returned": "Restored: it was retired only to make room, and was reported again.",
    "self_report_only": "A test or known answer supports it; a self-report alone can’t change it.",
    "same_text": "Nothing changed: the text is the same.",
    "same_pin": "Nothing changed: it is already pinned or unpinned.",
    "same_vote": "Nothing changed: this vote already exists.",
    "similar_to": "The same advice already exists in nearly the same words.",
    "too_few": "A merge needs at least two bullets.",
    "too_little_evidence": "Not enough votes against it.",
    "too_many_adds": "Too many new bullets for the number of outcomes.",
    "unknown_id": "This playbook has no such bullet.",
    "unknown_section": "This playbook has no such section.",
    "unsupported_op": "Unknown operation.",
    "already_active": "This bullet is already active.",
}


def reason_text(code: str) -> str:
    """The sentence for a reason code; an unknown code as words."""
    return REASONS.get(code) or code.replace("_", " ").capitalize()
