"""The Reflector: finds what one outcome teaches, and tags each cited bullet."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator

from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.llm import LLM, LLMRequest
from evolution.engine.prompt_excerpts import REFLECTOR_TOKENS, excerpt
from evolution.engine.prompt_text import (
    PromptLimits,
    data_block,
    purpose_block,
    trace_excerpt,
    truncate_middle,
)
from evolution.engine.prompts import load_prompt
from evolution.engine.structured_output import (
    BulletId,
    StructuredAnswer,
    Text,
    ask_model_with_short_fallback,
    lower,
)

MAX_TOKENS = 2_500
Tag = Literal["helpful", "harmful", "neutral"]


class BulletTag(StructuredAnswer):
    """How one bullet has served an outcome."""

    id: BulletId
    tag: Annotated[Tag, BeforeValidator(lower)]


class Reflection(StructuredAnswer):
    """The Reflector's answer on one outcome; an empty `key_insight`: it teaches nothing new."""

    reasoning: Text = ""
    error_identification: Text = ""
    root_cause_analysis: Text = ""
    correct_approach: Text = ""
    key_insight: Text
    bullet_tags: list[BulletTag] = []
    evidence: Text = ""


@dataclass(frozen=True)
class ReflectionResult:
    """A reflection, and the tokens of all the calls it took."""

    reflection: Reflection
    tokens: int = 0


def reflect(
    llm: LLM, model: str, outcome: OutcomeInput, playbook: PlaybookInput
) -> ReflectionResult:
    """The model's reflection on the outcome; raises an LLMError."""
    answered = ask_model_with_short_fallback(
        llm, lambda limits: reflection_request(model, outcome, playbook, limits)
    )
    return ReflectionResult(answered.answer, answered.tokens)


def reflection_request(
    model: str, outcome: OutcomeInput, playbook: PlaybookInput, limits: PromptLimits
) -> LLMRequest[Reflection]:
    """Instructions, then the playbook, then the outcome; its texts only inside data blocks.

    Of a playbook over REFLECTOR_TOKENS the bullets that are cited or have to do with the outcome.
    """
    bullets = playbook.document.by_id()
    cited = [bullet_id for bullet_id in outcome.cited if bullet_id in bullets]
    view = excerpt(
        playbook.document,
        f"{outcome.task}\n{outcome.notes}\n{outcome.trace}",
        besides=cited,
        tokens=int(min(playbook.token_budget, REFLECTOR_TOKENS) * limits.view),
    )
    # Once is enough: in a cut playbook they stand here.
    unseen = [key for key in cited if f"\n[{key}] " not in view]
    truth = outcome.right_answer
    return LLMRequest(
        role="reflector",
        step=f"reflect:{outcome.id}",
        model=model,
        messages=load_prompt("reflector").messages(
            playbook=view,
            purpose=f"{purpose_block(playbook)}\n",
            status=outcome.status,
            signal=outcome.signal,
            cited_ids=", ".join(cited) or "none",
            cited_bullets="".join(f"[{key}] {bullets[key].content}\n" for key in unseen),
            task=data_block(truncate_middle(outcome.task, limits.text)),
            trace=data_block(trace_excerpt(outcome.trace, limits.text)),
            notes=data_block(truncate_middle(outcome.notes, limits.text)),
            right_answer=f"\nThe right answer:\n{data_block(truth)}\n" if truth else "",
        ),
        schema=Reflection,
        schema_name="ace_reflection",
        max_tokens=MAX_TOKENS,
        tag_ids=tuple(cited),
    )
