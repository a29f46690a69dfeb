"""The Generator: answers one task with the playbook, and names the bullets it used."""

from evolution.engine.inputs import PlaybookInput
from evolution.engine.llm import LLM, LLMRequest
from evolution.engine.prompt_text import PromptLimits, data_block, playbook_block, truncate_middle
from evolution.engine.prompts import load_prompt
from evolution.engine.reflector import Reflection
from evolution.engine.structured_output import (
    BulletId,
    StructuredAnswer,
    Text,
    ask_model_with_short_fallback,
)

MAX_TOKENS = 3_000


class Generation(StructuredAnswer):
    """The Generator's answer to one task; `bullet_ids` are those it says it used."""

    reasoning: Text = ""
    final_answer: Text
    bullet_ids: list[BulletId] = []


def generate(
    llm: LLM,
    model: str,
    *,
    sample_id: str,
    task: str,
    playbook: PlaybookInput,
    context: str = "",
    reflection: Reflection | None = None,
) -> Generation:
    """The model's answer; `reflection` is on its last attempt. Raises an LLMError."""

    def request(limits: PromptLimits) -> LLMRequest[Generation]:
        return LLMRequest(
            role="generator",
            step=f"generate:{sample_id}",
            model=model,
            messages=load_prompt("generator").messages(
                playbook=playbook_block(
                    playbook.document, tokens=int(playbook.token_budget * limits.view)
                ),
                reflection=reflection_text(reflection),
                context=truncate_middle(context, limits.text) or "(none)",
                task=task,
            ),
            schema=Generation,
            schema_name="ace_generation",
            max_tokens=MAX_TOKENS,
            tag_ids=None if playbook.document.bullets else (),
        )

    return ask_model_with_short_fallback(llm, request).answer


def reflection_text(reflection: Reflection | None) -> str:
    """The reflection on the last attempt, as the prompt shows it."""
    if reflection is None:
        return "This is the first attempt."
    written = reflection.model_dump_json(exclude={"bullet_tags", "evidence"}, indent=1)
    return f"A reflection on the last attempt:\n{data_block(written)}"
