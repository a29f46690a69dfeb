"""The Curator: turns all reflections of a batch into a few small operations on the playbook."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema

from evolution.engine.inputs import OutcomeInput, PlaybookInput, max_adds
from evolution.engine.llm import LLM, AnswerError, LLMRequest
from evolution.engine.prompt_excerpts import (
    CURATOR_TOKENS,
    WHOLE_PLAYBOOK_NOTE,
    PlaybookView,
    curator_view,
    harmful_bullets,
    relevant_bullets,
)
from evolution.engine.prompt_text import PromptLimits, data_block, purpose_block, truncate_middle
from evolution.engine.prompts import load_prompt
from evolution.engine.reflector import Reflection
from evolution.engine.structured_output import (
    BulletId,
    ParsedAnswer,
    StructuredAnswer,
    Text,
    ask_model,
    ask_model_with_short_fallback,
    repair_messages,
    upper,
)
from playbooks.document.text import Document, estimate_tokens, find_ids, render

MAX_TOKENS = 5_000
TASK_CHARS = 600
"""Characters of each outcome's task that the Curator reads."""
MAX_UNKNOWN = 0.2
"""Share of the operations that may name bullets which do not exist before the answer is refused."""
OFFERED_OPERATIONS = ["ADD", "UPDATE", "MERGE", "REMOVE"]


class CurationOperation(StructuredAnswer):
    """One proposed edit. MERGE: `id` survives, `ids` go. Any type is kept: deltas judge it."""

    # Offered to the model as a choice of four; any other word is still read, and then recorded.
    type: Annotated[
        Text, BeforeValidator(upper), Field(json_schema_extra={"enum": OFFERED_OPERATIONS})
    ]
    section: Text = ""
    id: BulletId = ""
    ids: list[BulletId] = []
    content: Text = ""
    reason: Text = ""
    outcome_ids: list[Text] = []
    # Ours, not the model's: 0 when it has not read the bullet, so that the deltas refuse the edit.
    revision: SkipJsonSchema[int | None] = None


class Curation(StructuredAnswer):
    """The Curator's answer for one job; no operations: nothing new was learnt."""

    array_field: ClassVar[str] = "operations"

    reasoning: Text = ""
    operations: list[CurationOperation]


@dataclass(frozen=True)
class ReflectedOutcome:
    """An outcome and what the Reflector wrote about it."""

    outcome: OutcomeInput
    reflection: Reflection

    @property
    def findings(self) -> str:
        """What the Reflector found, for looking up what the playbook says about it."""
        found = self.reflection
        texts = (found.key_insight, found.correct_approach, found.error_identification)
        return "\n".join((*texts, found.root_cause_analysis))

    def as_text(self, label: str, document: Document, limits: PromptLimits) -> str:
        """The platform's own facts, then the Reflector's text as data."""
        known = document.by_id()
        tags = [f"{t.id} {t.tag}" for t in self.reflection.bullet_tags if t.id in known]
        written = {"task": truncate_middle(self.outcome.task, TASK_CHARS)}
        written |= self.reflection.model_dump(exclude={"bullet_tags", "reasoning"})
        cut = {key: truncate_middle(text, limits.text) for key, text in written.items()}
        return (
            f"{label}: status {self.outcome.status}, signal {self.outcome.signal}, "
            f"tags: {', '.join(tags) or 'none'}\n"
            + data_block(json.dumps(cut, ensure_ascii=False, indent=1))
        )


def curate(
    llm: LLM,
    model: str,
    reflections: Mapping[str, Reflection],
    outcomes: Sequence[OutcomeInput],
    playbook: PlaybookInput,
) -> Curation:
    """The model's operations, with the outcomes' real ids; raises an LLMError.

    When more than a fifth of them name unknown bullets the answer is sent back once, then refused
    with AnswerError `unknown_ids`.
    """
    batch = [ReflectedOutcome(o, reflections[o.id]) for o in outcomes if o.id in reflections]
    views = list[PlaybookView]()

    def request(limits: PromptLimits) -> LLMRequest[Curation]:
        views.append(playbook_view(batch, playbook, limits))
        return curation_request(model, batch, playbook, limits, views[-1])

    answered = ask_model_with_short_fallback(llm, request)
    curation = _with_known_bullets(llm, answered, playbook.document)
    curation = protect_unread_bullets(curation, views[-1].read)
    return restore_outcome_ids(curation, [studied.outcome.id for studied in batch])


def playbook_view(
    batch: Sequence[ReflectedOutcome], playbook: PlaybookInput, limits: PromptLimits
) -> PlaybookView:
    """The playbook for this batch; of a large one in full what is cited, problematic, relevant."""
    document = playbook.document
    learnt = "\n".join(studied.findings for studied in batch)
    named = [key for studied in batch for key in studied.outcome.cited] + find_ids(learnt.lower())
    wanted = [*named, *harmful_bullets(document), *relevant_bullets(document, learnt)]
    tokens = int(min(playbook.token_budget, CURATOR_TOKENS) * limits.view)
    return curator_view(document, wanted, tokens=tokens)


def curation_request(
    model: str,
    batch: Sequence[ReflectedOutcome],
    playbook: PlaybookInput,
    limits: PromptLimits,
    view: PlaybookView | None = None,
) -> LLMRequest[Curation]:
    """Instructions, then the playbook, then what changes: bullets, figures, reflections."""
    view = view or playbook_view(batch, playbook, limits)
    return LLMRequest(
        role="curator",
        step="curate",
        model=model,
        messages=load_prompt("curator").messages(
            playbook=view.block,
            purpose=purpose_block(playbook, sections=True),
            bullets=view.full_text or WHOLE_PLAYBOOK_NOTE,
            statistics=statistics(
                playbook, adds=sum(max_adds(o.outcome.signal) for o in batch), read=view.read
            ),
            reflections="\n\n".join(
                studied.as_text(f"O{number}", playbook.document, limits)
                for number, studied in enumerate(batch, start=1)
            ),
        ),
        schema=Curation,
        schema_name="ace_curation",
        max_tokens=MAX_TOKENS,
    )


def statistics(playbook: PlaybookInput, *, adds: int, read: frozenset[str] | None = None) -> str:
    """Size against budget, the limit on ADD, counters of the `read` bullets, what trials undid."""
    bullets = playbook.document.bullets
    used, budget = estimate_tokens(render(playbook.document)), playbook.token_budget
    taken_back = "\n".join(f"- {text}" for text in playbook.taken_back)
    votes = [
        f"{bullet.id} helpful={bullet.helpful} harmful={bullet.harmful}"
        + (" checked" if bullet.id in playbook.backed else "")
        for bullet in bullets
        if (bullet.helpful or bullet.harmful or bullet.id in playbook.backed)
        and (read is None or bullet.id in read)
    ]
    return "\n".join(
        [
            f"Budget: {used} of {budget} tokens used ({used * 100 // max(budget, 1)} %).",
            f"Bullets: {len(bullets)}.",
            f"ADD operations in this batch: at most {adds}.",
            "Votes:",
            *(votes or ["none yet"]),
            *(["", "Tried and failed:", data_block(taken_back)] if taken_back else []),
        ]
    )


def _with_known_bullets(llm: LLM, answered: ParsedAnswer[Curation], document: Document) -> Curation:
    """The answer, after one repair if too many of its operations name unknown bullets."""
    problem = unknown_bullets(answered.answer, document)
    if not problem:
        return answered.answer
    messages = repair_messages(answered.request, answered.answer.model_dump_json(), problem)
    repaired = ask_model(llm, replace(answered.request, messages=messages)).answer
    if unknown_bullets(repaired, document):
        raise AnswerError(
            "unknown_ids", f"The Curator's answer cannot be used, even after a repair: {problem}."
        )
    return repaired


def unknown_bullets(curation: Curation, document: Document) -> str:
    """What is wrong when too many operations name unknown bullets, else an empty string.

    Up to a fifth is left to the deltas, which reject and record each one.
    """
    known = document.by_id()
    unknown = [
        missing
        for operation in curation.operations
        if (missing := [key for key in (operation.id, *operation.ids) if key and key not in known])
        and operation.type != "ADD"
    ]
    if len(unknown) <= MAX_UNKNOWN * len(curation.operations):
        return ""
    return f"{len(unknown)} of {len(curation.operations)} operations name bullets that do not exist"


def protect_unread_bullets(curation: Curation, read: frozenset[str]) -> Curation:
    """Edits of bullets of which the Curator saw only the first words carry the revision 0.

    The deltas reject them as `conflict`, and record it: nobody rewrites what they have not read.
    """
    for operation in curation.operations:
        unread = {operation.id, *operation.ids} - read - {""}
        operation.revision = 0 if unread and operation.type != "ADD" else None
    return curation


def restore_outcome_ids(curation: Curation, outcome_ids: Sequence[str]) -> Curation:
    """The labels O1, O2 … replaced by outcome ids.

    An operation that names none rests on the whole batch: every bullet knows where it came from.
    """
    by_label = {f"O{number}": key for number, key in enumerate(outcome_ids, start=1)}
    for operation in curation.operations:
        named = [by_label.get(upper(label).strip("[]'\"")) for label in operation.outcome_ids]
        operation.outcome_ids = list(dict.fromkeys(filter(None, named))) or list(outcome_ids)
    return curation
