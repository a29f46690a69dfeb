"""Generator: answers one task with the playbook at hand, and names the bullets it used."""

from dataclasses import dataclass

from evolution.engine.answers import Answer, BulletId, Text, ask_briefly_if_needed
from evolution.engine.inputs import PlaybookInput
from evolution.engine.llm import LLM, LLMRequest
from evolution.engine.prompts import load_prompt
from evolution.engine.quoting import Limits, cut_middle, data_block, playbook_block
from evolution.engine.reflector import Reflection

MAX_TOKENS = 3_000


class Generation(Answer):
    """The Generator's answer to one task; `bullet_ids` are those it says it used."""

    reasoning: Text = ""
    final_answer: Text
    bullet_ids: list[BulletId] = []


@dataclass(frozen=True)
class Generated:
    """An answer, and the tokens of all the calls it took."""

    generation: Generation
    tokens: int = 0


def generate(
    llm: LLM,
    model: str,
    *,
    sample_id: str,
    task: str,
    playbook: PlaybookInput,
    context: str = "",
    reflection: Reflection | None = None,
) -> Generated:
    """The model's answer; `reflection` is on its last attempt. Raises an LLMError."""

    def request(limits: Limits) -> LLMRequest[Generation]:
        return LLMRequest(
            role="generator",
            step=f"generate:{sample_id}",
            model=model,
            messages=load_prompt("generator").messages(
                playbook=playbook_block(
                    playbook.document, tokens=int(playbook.token_budget * limits.view)
                ),
                reflection=reflection_text(reflection),
                context=cut_middle(context, limits.text) or "(none)",
                task=task,
            ),
            schema=Generation,
            schema_name="ace_generation",
            max_tokens=MAX_TOKENS,
        )

    answered = ask_briefly_if_needed(llm, request)
    return Generated(answered.answer, answered.tokens)


def reflection_text(reflection: Reflection | None) -> str:
    """What the Generator is told about its last attempt."""
    if reflection is None:
        return "This is the first attempt."
    told = reflection.model_dump_json(exclude={"bullet_tags", "evidence"}, indent=1)
    return f"A reflection on the last attempt:\n{data_block(told)}"
