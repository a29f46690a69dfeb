"""The engine `rules`: fixed rules, no model, no network, deterministic."""

import hashlib
import re
from collections.abc import Mapping, Sequence

from evolution.engine.curator import Curation, CurationOperation
from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.providers.lesson_extraction import lessons
from evolution.engine.reflector import BulletTag, Reflection, ReflectionResult, Tag
from playbooks.document.text import BULLET_ID, find_ids, normal_text

VERSION = "3"
_ID = rf"[\[('\"`]{{0,3}}{BULLET_ID.pattern}[\])'\"`]{{0,3}}"
# Each repetition has an end: agents write these texts, and `re` holds the interpreter's lock.
_GAP, _SPACE = r"\s{0,3}", r"\s{1,3}"
_AND = rf"{_GAP}(?:,{_GAP}and|,|;|and|&){_GAP}"
_IDS = rf"(?:bullets?{_SPACE})?(?P<ids>{_ID}(?:{_AND}{_ID}){{0,20}})"
_BLAMED_AFTER = re.compile(
    r"\b(?:harmful|misled by|misleading|misguided by|bad advice(?: in| from)?|"
    rf"wrong advice(?: in| from)?){_GAP}:?{_GAP}{_IDS}",
    re.IGNORECASE,
)
_BLAMED_BEFORE = re.compile(
    rf"{_IDS}{_SPACE}(?:misled\b|(?:was|were|is|are){_SPACE}"
    rf"(?:(?:plainly|clearly|simply){_SPACE})?"
    r"(?:harmful|misleading|wrong|incorrect|outdated)\b)",
    re.IGNORECASE,
)
_NOT = re.compile(r"(?:not|never|no|nothing|nor|hardly|\w+n['’]t)\s*$", re.IGNORECASE)


class RulesEngine:
    """The engine without a model. It never fails."""

    name = "rules"
    vote_source = "rules"

    def __init__(self) -> None:
        self.prompt_versions = {"rules": VERSION}
        self.config_hash = hashlib.sha256(f"rules {VERSION}".encode()).hexdigest()

    def reflect(self, outcome: OutcomeInput, playbook: PlaybookInput) -> ReflectionResult:
        """Tags for cited bullets by the outcome's status, and the lessons in notes and trace."""
        found = lessons(outcome.notes, outcome.trace)
        blamed = blamed_bullets(outcome)
        return ReflectionResult(
            Reflection(
                reasoning=f"Fixed rules (version {VERSION}); no model has read this outcome.",
                key_insight="\n".join(lesson.content for lesson in found),
                bullet_tags=[
                    BulletTag(id=bullet_id, tag=tag_of(outcome.status, bullet_id in blamed))
                    for bullet_id in _concerned(outcome, blamed)
                ],
                evidence=found[0].content[:200] if found else "",
            )
        )

    def curate(
        self,
        reflections: Mapping[str, Reflection],
        outcomes: Sequence[OutcomeInput],
        playbook: PlaybookInput,
    ) -> Curation:
        """One ADD for each lesson; the delta rules sort out what the playbook says already.

        What a trial has taken back is not proposed again.
        """
        refused = {normal_text(text) for text in playbook.taken_back}
        operations = [
            CurationOperation(
                type="ADD",
                section=lesson.section,
                content=lesson.content,
                reason=f"Said in the report of an outcome ({outcome.status}).",
                outcome_ids=[outcome.id],
            )
            for outcome in outcomes
            if outcome.id in reflections
            for lesson in lessons(outcome.notes, outcome.trace)
            if normal_text(lesson.content) not in refused
        ]
        return Curation(
            reasoning=f"Fixed rules (version {VERSION}); no model was asked.",
            operations=operations,
        )


def tag_of(status: str, is_blamed: bool) -> Tag:
    """A failure alone blames no advice, and a success does not clear what the agent blames."""
    if status == "failure" and is_blamed:
        return "harmful"
    return "helpful" if status == "success" and not is_blamed else "neutral"


def _concerned(outcome: OutcomeInput, blamed: set[str]) -> list[str]:
    """The cited bullets; after a failure also those that the agent blames without citing them."""
    named = sorted(blamed) if outcome.status == "failure" else []
    return list(dict.fromkeys([*outcome.cited, *named]))


def blamed_bullets(outcome: OutcomeInput) -> set[str]:
    """Ids that notes or trace call harmful: `harmful: str-00001`, `misled by [str-00001]`."""
    blamed: set[str] = set()
    for text in (outcome.notes, outcome.trace):
        for match in _BLAMED_AFTER.finditer(text):
            if not _NOT.search(text[max(0, match.start() - 20) : match.start()]):
                blamed |= set(find_ids(match.group("ids").lower()))
        for match in _BLAMED_BEFORE.finditer(text):
            blamed |= set(find_ids(match.group("ids").lower()))
    return blamed
