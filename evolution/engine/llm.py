"""The engine's interface to models: requests, replies, usage, the ledger, and errors."""

from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from playbooks.document.text import estimate_tokens

AnswerT = TypeVar("AnswerT", bound=BaseModel)


_KEPT = {"type", "enum", "items", "anyOf", "$ref", "properties", "$defs"}


@cache  # of a few classes; making one takes longer than all else that a request needs
def strict_schema(answer: type[BaseModel]) -> dict[str, Any]:
    """Every field required, nothing else allowed, and only keywords that every provider knows.

    What is optional for our reading is demanded of the model: it can leave a field empty. Shared,
    so nobody may change it.
    """
    schema: dict[str, Any] = _strict(answer.model_json_schema())
    return schema


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _kept(key, value) for key, value in node.items() if key in _KEPT}
    if "properties" in kept:
        kept |= {"required": list(kept["properties"]), "additionalProperties": False}
    return kept


def _kept(key: str, value: Any) -> Any:
    if key in {"properties", "$defs"}:
        return {name: _strict(item) for name, item in value.items()}
    return _strict(value)


@dataclass(frozen=True)
class ChatRequest:
    """One question, answered in words.

    `step` names it in the ledger: `curate`, or `reflect:<outcome id>`.
    """

    step: str
    model: str
    messages: list[dict[str, str]]
    max_tokens: int

    @property
    def operation(self) -> str:
        """`reflect`, `curate` or `generate`."""
        return self.step.partition(":")[0]


@dataclass(frozen=True)
class LLMRequest(ChatRequest, Generic[AnswerT]):
    """One question, answered as `schema`; `tag_ids`: the bullets that it may name, None: any."""

    role: str
    schema: type[AnswerT]
    schema_name: str
    tag_ids: tuple[str, ...] | None = None

    def json_schema(self) -> dict[str, Any]:
        """The schema as it is sent, with the bullets that it may name as the only choices."""
        schema = strict_schema(self.schema)
        if self.tag_ids is None:
            return schema
        schema = deepcopy(schema)
        if self.tag_ids:
            schema["$defs"]["BulletTag"]["properties"]["id"]["enum"] = list(self.tag_ids)
            return schema
        # A small model fills a list that has nothing to hold until it is cut off.
        for name in {"bullet_tags", "bullet_ids"} & schema["properties"].keys():
            del schema["properties"][name]
            schema["required"].remove(name)
        schema.pop("$defs", None)
        return schema


@dataclass(frozen=True)
class Usage:
    """Tokens of one call. `prompt_tokens` includes the cached ones; `estimated` = counted by us."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    total_tokens: int = 0
    estimated: bool = False

    @classmethod
    def most(cls, request: ChatRequest) -> "Usage":
        """The most that the call can use: the text sent, and the longest answer."""
        sent = cls.estimate(request).prompt_tokens
        return cls(sent, request.max_tokens, total_tokens=sent + request.max_tokens, estimated=True)

    @classmethod
    def estimate(cls, request: ChatRequest, text: str = "") -> "Usage":
        """An estimate of what the call used, from the text sent and received."""
        sent = sum(estimate_tokens(message["content"]) for message in request.messages)
        received = estimate_tokens(text) if text else 0
        return cls(sent, received, total_tokens=sent + received, estimated=True)


@dataclass(frozen=True)
class LLMReply:
    """The text of a model. `finish_reason` is `length` when it was cut off."""

    text: str
    usage: Usage
    model: str
    request_id: str
    finish_reason: str = "stop"


class LLM(Protocol):
    """A model behind an address. Called from several threads at once."""

    def complete(self, request: LLMRequest[Any]) -> LLMReply:
        """Make one physical call, metered through a Ledger; raises an LLMError.

        A call that is refused for one of its parameters is repeated at once without it.
        """
        ...


class Ledger(Protocol):
    """Records physical calls. Called from the engine's threads."""

    def begin(self, request: ChatRequest) -> Any:
        """Write that a call is about to be made; the entry is passed to `finish`.

        Raises CallHeldBack or CredentialError when the call must not be made: then nothing is
        written.
        """
        ...

    def finish(self, entry: Any, reply: LLMReply, error: str = "") -> None:
        """Write what the call used; `error` is a code, empty for an answer.

        Of a failed call the reply is what is known of it, with the usage that may be charged.
        """
        ...


class LLMError(Exception):
    """A failed call or question. `message` is a sentence for a person.

    It never quotes a prompt, an outcome or a key: it is stored on the job and shown. `is_charged`:
    whether the provider may ask money for the call.
    """

    is_charged = True

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class TransientError(LLMError):
    """A passing fault: the job waits, `retry_after` seconds if the provider named them."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retry_after: float | None = None,
        costs_attempt: bool = True,
    ) -> None:
        super().__init__(code, message)
        self.retry_after = retry_after
        self.costs_attempt = costs_attempt


class CallHeldBack(TransientError):
    """The call was not made: the provider is down or busy, or a limit is reached.

    `retry_after` is in seconds; it costs no attempt. `mark` and `want`: the arguments with which
    the sweep asks the limit whether the wait can end early.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retry_after: float,
        mark: str = "",
        want: Decimal | None = None,
    ) -> None:
        super().__init__(code, message, retry_after=retry_after, costs_attempt=False)
        self.mark, self.want = mark, want


class CredentialError(LLMError):
    """The key, the quota, the model's name or the address is wrong: a person has to act.

    `retry_after`: seconds to the next try, when no call was made after an earlier refusal.
    """

    is_charged = False

    def __init__(self, code: str, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(code, message)
        self.retry_after = retry_after


CONTEXT_TOO_LONG = "context_too_long"


class AnswerError(LLMError):
    """The model gave no usable answer to this question; others may still get one."""


class Cancelled(LLMError):
    """The call was cancelled: its connection was cut."""

    code = "cancelled"

    def __init__(self, *, is_charged: bool = True) -> None:
        super().__init__(self.code, "The answer was stopped.")
        self.is_charged = is_charged
