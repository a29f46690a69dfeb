"""Chat completions of any OpenAI-compatible endpoint: one physical call, metered on both sides.

Importing this module imports the SDK; see `endpoint`.
"""

import threading
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import openai
from pydantic import BaseModel

from core.http.deadlines import Resolve
from evolution.engine.llm import (
    AnswerError,
    ChatRequest,
    CredentialError,
    DialectRefused,
    Ledger,
    LLMReply,
    LLMRequest,
    Usage,
)
from evolution.engine.providers.bounded_transport import ReplyTooLarge
from evolution.engine.providers.completion_parser import read_reply
from evolution.engine.providers.endpoint import (
    FailedCall,
    connection_failure,
    make_client,
    metered_call,
    refusal_of,
    request_id_of,
)
from evolution.engine.providers.error_mapping import Refusal, map_refusal

SIMPLER_FORMAT = {"json_schema": "json_object", "json_object": "text"}


@dataclass(frozen=True)
class Dialect:
    """How a provider wants to be asked: the newest way first, simpler when it is refused."""

    format: str = "json_schema"
    cap: str = "max_completion_tokens"
    counts: bool = True
    """Whether a stream is asked to end with its usage."""

    def parameters(self, request: LLMRequest[Any]) -> dict[str, Any]:
        return {self.cap: request.max_tokens} | self._format(request)

    def chat_parameters(self, request: ChatRequest) -> dict[str, Any]:
        """The same for an answer that is streamed, in words."""
        counts = {"stream_options": {"include_usage": True}} if self.counts else {}
        return {self.cap: request.max_tokens} | counts

    def _format(self, request: LLMRequest[Any]) -> dict[str, Any]:
        if self.format == "text":
            return {}
        if self.format == "json_object":
            return {"response_format": {"type": "json_object"}}
        schema = {
            "name": request.schema_name,
            "strict": True,
            "schema": strict_schema(request.schema),
        }
        # Past the SDK's own walk over every part of a parameter: it knows nothing to change here.
        asked = {"type": "json_schema", "json_schema": schema}
        return {"extra_body": {"response_format": asked}}

    def simpler(self, refusal: Refusal) -> "Dialect | None":
        """The next dialect, if the refusal names something that this one uses."""
        if refusal.status not in {400, 422}:
            return None
        said = refusal.said.lower()
        names_format = any(name in said for name in ("response_format", "json_schema", "json mode"))
        if names_format and self.format in SIMPLER_FORMAT:
            return replace(self, format=SIMPLER_FORMAT[self.format])
        if self.counts and ("stream_options" in said or "include_usage" in said):
            return replace(self, counts=False)
        too_much = "too large" in said or "at most" in said
        if self.cap in said and self.cap != "max_tokens" and not too_much:
            return replace(self, cap="max_tokens")
        return None


class OpenAILLM:
    """One endpoint with one key. Several threads may share it.

    `deadline`: seconds for a whole call, connection to last byte. Raises CredentialError for a
    base URL or a key that cannot be used at all.
    """

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str | None,
        deadline: float,
        ledger: Ledger,
        resolve: Resolve | None = None,
    ) -> None:
        self._client = make_client(
            api_key=api_key, base_url=base_url, deadline=deadline, resolve=resolve
        )
        self._ledger = ledger
        self._dialects: dict[str, Dialect] = {}
        self._lock = threading.Lock()

    def complete(self, request: LLMRequest[Any]) -> LLMReply:
        """Make one physical call, written in the ledger before and after; raises an LLMError."""
        return metered_call(self._ledger, request, lambda: self._call(request))

    def _call(self, request: LLMRequest[Any]) -> LLMReply:
        dialect = self._dialects.get(request.model, Dialect())
        try:
            raw = self._client.chat.completions.with_raw_response.create(
                model=request.model,
                messages=request.messages,  # type: ignore[arg-type]  # plain dicts, as documented
                **dialect.parameters(request),
            )
        except openai.APIStatusError as error:
            raise self._refused(error, request.model, dialect) from None
        except openai.APIConnectionError as error:
            raise connection_failure(error, Usage.estimate(request)) from None
        except CredentialError as error:  # of `resolve`: nothing was sent
            raise FailedCall(error, Usage()) from None
        except ReplyTooLarge:
            answer = AnswerError("reply_too_large", "The provider's reply was over 2 MB.")
            raise FailedCall(answer, Usage.estimate(request)) from None
        served = read_reply(raw.content, raw.headers, request)
        if served.error is not None:
            raise FailedCall(served.error, served.reply.usage, served.reply.request_id)
        return served.reply

    def _refused(self, error: openai.APIStatusError, model: str, dialect: Dialect) -> FailedCall:
        """An error status costs nothing; one that names our dialect teaches a simpler one."""
        refusal, request_id = refusal_of(error), request_id_of(error)
        simpler = dialect.simpler(refusal)
        if simpler is None:
            return FailedCall(map_refusal(refusal), Usage(), request_id)
        with self._lock:
            # Calls under way are refused for the same thing: only the first one is news.
            if self._dialects.get(model, Dialect()) == dialect:
                self._dialects[model] = simpler
        message = "The provider does not know a parameter that was sent."
        return FailedCall(DialectRefused("dialect", message), Usage(), request_id)


_KEPT = {"type", "enum", "items", "anyOf", "$ref", "properties", "$defs"}


def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Every field required, nothing else allowed, and only keywords that every provider knows.

    What is optional for our reading is demanded of the model: it can leave a field empty.
    """
    return _made(model)


@cache  # of a few classes; making one takes longer than all else that a request needs
def _made(model: type[BaseModel]) -> dict[str, Any]:
    schema: dict[str, Any] = _strict(model.model_json_schema())
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
