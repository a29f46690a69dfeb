"""Chat completions of any OpenAI-compatible endpoint: one physical call, metered on both sides.

Importing this module imports the SDK; see `endpoint`.
"""

import threading
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import openai
from pydantic import BaseModel

from core.http.deadlines import Resolve
from evolution.engine.llm import (
    ChatRequest,
    DialectRefused,
    Ledger,
    LLMReply,
    LLMRequest,
    Usage,
)
from evolution.engine.providers.completion_parser import read_reply
from evolution.engine.providers.endpoint import (
    FailedCall,
    make_client,
    metered_call,
    provider_errors,
    refusal_of,
    refused_call,
    request_id_of,
)
from evolution.engine.providers.error_mapping import Refusal

SIMPLER_FORMAT = {"json_schema": "json_object", "json_object": "text"}


@dataclass(frozen=True)
class Dialect:
    """The parameters that a provider accepts: the newest first, simpler ones after a refusal."""

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
            "schema": strict_schema(request.schema),  # type: ignore[arg-type]  # a class is hashable
        }
        # Past the SDK's own walk over every part of a parameter: it knows nothing to change here.
        asked = {"type": "json_schema", "json_schema": schema}
        return {"extra_body": {"response_format": asked}}

    def simpler(self, refusal: Refusal) -> "Dialect | None":
        """The next dialect, if the refusal names something that this one uses."""
        if refusal.status not in {400, 422}:
            return None
        text = refusal.text.lower()
        names_format = any(name in text for name in ("response_format", "json_schema", "json mode"))
        if names_format and self.format in SIMPLER_FORMAT:
            return replace(self, format=SIMPLER_FORMAT[self.format])
        if self.counts and ("stream_options" in text or "include_usage" in text):
            return replace(self, counts=False)
        too_much = "too large" in text or "at most" in text
        if self.cap in text and self.cap != "max_tokens" and not too_much:
            return replace(self, cap="max_tokens")
        return None

    def after(self, error: openai.APIStatusError) -> "tuple[FailedCall, Dialect]":
        """The failed call of an error status, and the dialect of the next call."""
        simpler = self.simpler(refusal_of(error))
        if simpler is None:
            return refused_call(error), self
        refused = DialectRefused("dialect", "The provider does not know a parameter that was sent.")
        return FailedCall(refused, Usage(), request_id_of(error)), simpler


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
        refused = partial(self._refused, model=request.model, dialect=dialect)
        with provider_errors(Usage.estimate(request), refused):
            raw = self._client.chat.completions.with_raw_response.create(
                model=request.model,
                messages=request.messages,  # type: ignore[arg-type]  # plain dicts, as documented
                **dialect.parameters(request),
            )
        served = read_reply(raw.content, raw.headers, request)
        if served.error is not None:
            raise FailedCall(served.error, served.reply.usage, served.reply.request_id)
        return served.reply

    def _refused(self, error: openai.APIStatusError, model: str, dialect: Dialect) -> FailedCall:
        failed, simpler = dialect.after(error)
        with self._lock:
            # Calls under way are refused for the same thing: only the first one is news.
            if self._dialects.get(model, Dialect()) == dialect:
                self._dialects[model] = simpler
        return failed


_KEPT = {"type", "enum", "items", "anyOf", "$ref", "properties", "$defs"}


@cache  # of a few classes; making one takes longer than all else that a request needs
def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Every field required, nothing else allowed, and only keywords that every provider knows.

    What is optional for our reading is demanded of the model: it can leave a field empty.
    """
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
