"""Asks a model for a structured answer and validates it; every role uses it."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Generic

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    model_validator,
)

from evolution.engine.llm import CONTEXT_TOO_LONG, LLM, AnswerError, AnswerT, LLMReply, LLMRequest
from evolution.engine.prompt_text import (
    FULL_LIMITS,
    SHORT_LIMITS,
    PromptLimits,
    clean_text,
    truncate_middle,
)
from evolution.engine.prompts import load_prompt
from playbooks.document.text import find_ids, normal_text

RAISED_CAP_FACTOR = 3
"""A reply that was cut off is asked for once more with this many times the tokens."""
OWN_CAP_SHARE = 0.9
"""Of the tokens that were asked for: a reply cut off below it met another cap than ours."""
MAX_QUOTED_REPLY_CHARS = 20_000
"""Characters of an unfit reply that are sent back with what is wrong with it."""
LOOP_CHARS, LOOPS = 60, 4
"""Characters at the end of a reply that was cut off, and how often they make it a loop."""
MAX_STARTS = 200
"""Places in a reply's prose at which a JSON value is looked for."""
_FENCE = re.compile(r"```[a-zA-Z]*[^\S\n]*\n(.*?)```", re.DOTALL)
_START = re.compile(r"[{\[]")
# What a model thinks aloud before its answer may hold JSON as well; some servers open it unseen.
_THOUGHT = re.compile(r"\A\s*(?:<think>.*?(?:</think>|\Z)|[^\s{\[`].*?</think>)", re.DOTALL)


def bare_id(value: Any) -> Any:
    """`str-00001` from `[str-00001]`, `'str-00001'` or `bullet str-00001`; else the value."""
    found = find_ids(value.lower()) if isinstance(value, str) else []
    if len(found) == 1:
        return found[0]
    return value.strip() if isinstance(value, str) else value


def lower(value: Any) -> Any:
    """`helpful` from ` Helpful `."""
    return value.strip().lower() if isinstance(value, str) else value


def upper(value: Any) -> Any:
    """`ADD` from `add`."""
    return value.strip().upper() if isinstance(value, str) else value


Text = Annotated[str, AfterValidator(clean_text)]
BulletId = Annotated[str, AfterValidator(clean_text), BeforeValidator(bare_id)]


class StructuredAnswer(BaseModel):
    """What a role returns. Unknown keys are ignored, and a null counts as missing."""

    model_config = ConfigDict(extra="ignore")
    array_field: ClassVar[str] = ""
    """The field that a bare JSON array stands for, if any."""

    @model_validator(mode="before")
    @classmethod
    def drop_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: item for key, item in value.items() if item is not None}


@dataclass(frozen=True)
class ParsedAnswer(Generic[AnswerT]):
    """An answer that fits, the tokens of all the calls it took, and the question."""

    answer: AnswerT
    tokens: int
    request: LLMRequest[AnswerT]


def ask_model(llm: LLM, request: LLMRequest[AnswerT]) -> ParsedAnswer[AnswerT]:
    """The model's answer as `request.schema`.

    A reply that does not fit is sent back once with what is wrong, then the question is asked
    once afresh. Raises AnswerError (`malformed`, `truncated`, or the provider's own reasons),
    TransientError and CredentialError.
    """
    talk = _Exchange(llm, request)
    text, read = talk.turn(request.messages)
    if isinstance(read, str):
        text, read = talk.turn(repair_messages(request, text, read))
    if isinstance(read, str):
        text, read = talk.turn(request.messages)
    if isinstance(read, str):
        raise AnswerError("malformed", f"The model's reply was invalid, even after a retry: {read}")
    return ParsedAnswer(read, talk.tokens, request)


def ask_model_with_short_fallback(
    llm: LLM, make_request: Callable[[PromptLimits], LLMRequest[AnswerT]]
) -> ParsedAnswer[AnswerT]:
    """`ask_model`, and once more with shorter texts when the prompt was too long for the model."""
    try:
        return ask_model(llm, make_request(FULL_LIMITS))
    except AnswerError as error:
        if error.code != CONTEXT_TOO_LONG:
            raise
    return ask_model(llm, make_request(SHORT_LIMITS))


def repair_messages(request: LLMRequest[Any], reply: str, problem: str) -> list[dict[str, str]]:
    """The question, the reply, and what is wrong with it."""
    return [
        *request.messages,
        {
            "role": "assistant",
            "content": truncate_middle(reply, MAX_QUOTED_REPLY_CHARS) or "(empty)",
        },
        {"role": "user", "content": load_prompt("repair").user(problem=problem)},
    ]


class _Exchange(Generic[AnswerT]):
    """The calls that one question takes; a raised token cap stays raised."""

    def __init__(self, llm: LLM, request: LLMRequest[AnswerT]) -> None:
        self.llm = llm
        self.request = request
        self.cap = request.max_tokens
        self.tokens = 0

    def turn(self, messages: list[dict[str, str]]) -> tuple[str, AnswerT | str]:
        reply = self._call(messages)
        if reply.finish_reason == "length" and self.cap == self.request.max_tokens:
            if is_repetitive(reply.text):
                raise AnswerError("repeats", "The model repeated itself until it was cut off.")
            used = 0 if reply.usage.estimated else reply.usage.completion_tokens
            if 0 < used < OWN_CAP_SHARE * self.cap:
                message = f"The model's reply was cut off at its role's cap of {used} tokens."
                raise AnswerError("truncated", message)
            self.cap *= RAISED_CAP_FACTOR
            reply = self._call(messages)
        if reply.finish_reason == "length":
            raise AnswerError(
                "truncated", f"The model's reply was cut off, even at {self.cap} tokens."
            )
        copied = load_prompt(self.request.role).form_phrases
        return reply.text, read_answer(reply.text, self.request.schema, copied)

    def _call(self, messages: list[dict[str, str]]) -> LLMReply:
        asked = replace(self.request, messages=messages, max_tokens=self.cap)
        reply = self.llm.complete(asked)
        self.tokens += reply.usage.total_tokens
        return reply


def is_repetitive(text: str) -> bool:
    """Whether the end of a text stood in it again and again: more tokens would bring more of it."""
    return text.count(text[-LOOP_CHARS:]) >= LOOPS if len(text) >= LOOP_CHARS * LOOPS else False


def read_answer(
    text: str, schema: type[AnswerT], form: frozenset[str] = frozenset()
) -> AnswerT | str:
    """The one answer in a reply: JSON, JSON in a fence, or JSON in prose; a bare array too.

    Else what is wrong, for the model that repairs it. Two different values that both fit are no
    answer, nor is one that copies a phrase of the prompt's `form`: small models send it back.
    """
    fits: dict[str, AnswerT] = {}
    problem = "it contains no JSON object"
    for value in json_values(_THOUGHT.sub("", text)):
        try:
            answer = schema.model_validate(_unwrapped(value, schema))
        except ValidationError as error:
            problem = _describe_errors(error)
        else:
            if copied := next(_copied_fields(answer.model_dump(), form), ""):
                return f"`{copied}` repeats the description of the field"
            fits[answer.model_dump_json()] = answer
    if len(fits) == 1:
        return next(iter(fits.values()))
    return f"it contains {len(fits)} different answers" if fits else problem


def _copied_fields(value: Any, form: frozenset[str], name: str = "") -> Iterator[str]:
    """The names of the fields whose text is a phrase of the form, or nothing but dots."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _copied_fields(item, form, key)
    elif isinstance(value, list):
        for item in value:
            yield from _copied_fields(item, form, name)
    elif isinstance(value, str) and value:
        said = normal_text(value)
        if said in form or not said.strip("…. "):
            yield name


def json_values(text: str) -> list[Any]:
    """The JSON objects and arrays of a reply: all of it, else its fences, else within prose."""
    for parts in ([text.strip()], _FENCE.findall(text)):
        values = [value for part in parts for value in _parsed(part)]
        if values:
            return values
    return list(_embedded(text))


def _parsed(text: str) -> Iterator[Any]:
    # RecursionError: deep nesting; ValueError also covers an integer of thousands of digits.
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(value, dict | list):
        yield value


def _embedded(text: str) -> Iterator[Any]:
    decoder, position = json.JSONDecoder(), 0
    for _ in range(MAX_STARTS):
        start = _START.search(text, position)
        if start is None:
            return
        try:
            value, position = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            position = start.end()
        else:
            yield value


def _unwrapped(value: Any, schema: type[AnswerT]) -> Any:
    """An array in place of the object: the object's one list field, or its only element."""
    if not isinstance(value, list):
        return value
    needed = {name for name, field in schema.model_fields.items() if field.is_required()}
    if len(value) == 1 and isinstance(value[0], dict) and needed <= value[0].keys():
        return value[0]
    array_field: str = getattr(schema, "array_field", "")
    return {array_field: value} if array_field else value


def _describe_errors(error: ValidationError) -> str:
    """Where and what, without the values: they may quote an outcome."""
    details = error.errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(
        f"`{'.'.join(map(str, detail['loc'])) or 'the answer'}`: {detail['msg']}"
        for detail in details[:5]
    )
