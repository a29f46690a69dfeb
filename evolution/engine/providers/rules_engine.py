"""The engine `rules`: fixed rules, no model, no network, deterministic."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from evolution.engine.curator import Curation, CurationOperation
from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.providers.advice import pattern
from evolution.engine.providers.lesson_extraction import lessons
from evolution.engine.reflector import BulletTag, Reflection, ReflectionResult, Tag
from playbooks.document.budget import LOSS_DIVISOR
from playbooks.document.text import BULLET_ID, find_ids, normal_text

VERSION = "3"
LEAD, CONTEXT, MAX_MENTIONS = 30, 300, 200
"""Characters before the first and after each id that are about it; ids that are looked at."""


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
                reasoning=f"Rules engine, version {VERSION}: no model read this outcome.",
                key_insight="\n".join(lesson.content for lesson in found),
                bullet_tags=[
                    BulletTag(id=bullet_id, tag=tag_of(outcome, bullet_id, bullet_id in blamed))
                    for bullet_id in outcome.cited
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
        """One ADD for each lesson, one REMOVE for each bullet that is called harmful too often.

        The delta rules sort out what the playbook says already, and who called it harmful. What a
        trial has taken back is not proposed again.
        """
        refused = {normal_text(text) for text in playbook.taken_back}
        operations = [
            CurationOperation(
                type="ADD",
                section=lesson.section,
                content=lesson.content,
                reason=f"From a report ({outcome.status}).",
                outcome_ids=[outcome.id],
            )
            for outcome in outcomes
            if outcome.id in reflections
            for lesson in lessons(outcome.notes, outcome.trace)
            if normal_text(lesson.content) not in refused
        ]
        return Curation(
            reasoning=f"Rules engine, version {VERSION}: no model was asked.",
            operations=[*operations, *_removals(reflections, playbook)],
        )


def tag_of(outcome: OutcomeInput, bullet_id: str, is_blamed: bool) -> Tag:
    """A failure alone blames no advice, and a success does not clear what the agent blames."""
    if outcome.status == "failure":
        said = _said_about(outcome, bullet_id)
        if pattern("acquittal").search(said):
            return "neutral"
        return "harmful" if is_blamed or pattern("blame").search(said) else "neutral"
    if outcome.status != "success" or is_blamed:
        return "neutral"
    return "neutral" if pattern("unused").search(_said_about(outcome, bullet_id)) else "helpful"


def _said_about(outcome: OutcomeInput, bullet_id: str) -> str:
    """What the notes say after each mention of the bullet, up to the next id, and just before."""
    text = outcome.notes
    ids = [(m.start(), m.group().lower()) for m in islice(BULLET_ID.finditer(text), MAX_MENTIONS)]
    ends = [*(start for start, _ in ids[1:]), len(text)]
    return " ".join(
        text[max(0, start - LEAD) if number == 0 else start : min(end, start + CONTEXT)]
        for number, ((start, name), end) in enumerate(zip(ids, ends, strict=False))
        if name == bullet_id
    )


def _removals(
    reflections: Mapping[str, Reflection], playbook: PlaybookInput
) -> Iterator[CurationOperation]:
    blamed: dict[str, list[str]] = {}
    for outcome_id, reflection in reflections.items():
        for tag in reflection.bullet_tags:
            if tag.tag == "harmful":
                blamed.setdefault(tag.id, []).append(outcome_id)
    known = playbook.document.by_id()
    # As many as the collapse guard lets go: a refused version would teach nothing.
    for bullet_id, outcome_ids in list(blamed.items())[: len(known) // LOSS_DIVISOR]:
        bullet = known.get(bullet_id)
        if bullet and bullet.harmful + len(outcome_ids) > max(1, bullet.helpful):
            yield CurationOperation(
                type="REMOVE",
                id=bullet_id,
                reason="Several reports call it harmful.",
                outcome_ids=outcome_ids,
            )


def blamed_bullets(outcome: OutcomeInput) -> set[str]:
    """Ids that notes or trace call harmful: `harmful: str-00001`, `misled by [str-00001]`."""
    blamed: set[str] = set()
    for text in (outcome.notes, outcome.trace):
        for match in pattern("blamed_after").finditer(text):
            if not pattern("negation").search(text[max(0, match.start() - 20) : match.start()]):
                blamed |= set(find_ids(match.group("ids").lower()))
        for match in pattern("blamed_before").finditer(text):
            blamed |= set(find_ids(match.group("ids").lower()))
    return blamed
