"""Embeddings of any OpenAI-compatible endpoint: one physical call, metered on both sides.

Importing this module imports the SDK; see `endpoint`.
"""

from collections.abc import Sequence
from typing import Any

from core.http.deadlines import Resolve
from evolution.engine.llm import AnswerError, Ledger, Usage
from evolution.engine.providers.completion_parser import dict_of, object_of
from evolution.engine.providers.endpoint import (
    FailedCall,
    make_client,
    provider_errors,
    refused_call,
)
from playbooks.document.text import estimate_tokens

MAX_NUMBERS = 16_384
MAX_COMPONENT = 1e6
MALFORMED_EMBEDDINGS = AnswerError(
    "malformed", "The provider's embeddings do not fit the texts that were sent."
)


class OpenAIEmbedder:
    """One embedding model behind one endpoint. Raises CredentialError as OpenAILLM does."""

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str | None,
        model: str,
        deadline: float,
        ledger: Ledger,
        resolve: Resolve | None = None,
    ) -> None:
        self._client = make_client(
            api_key=api_key, base_url=base_url, deadline=deadline, resolve=resolve
        )
        self._ledger = ledger
        self.model = model

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector for each text, in order, all of one length; raises an LLMError.

        Exactly one physical call. 32 texts of 3,072 numbers stay under the cap on a reply.
        """
        sent = Usage(_count(texts), total_tokens=_count(texts), estimated=True)
        entry = self._ledger.begin(step="embed", operation="embed", model=self.model, most=sent)
        try:
            body = self._call(texts, sent)
            usage = _usage(body) or sent
            vectors = _vectors(body, len(texts))
            if vectors is None:
                raise FailedCall(MALFORMED_EMBEDDINGS, usage)
        except FailedCall as failed:
            self._ledger.finish(
                entry,
                usage=failed.usage,
                model=self.model,
                request_id=failed.request_id,
                error=failed.error.code,
            )
            raise failed.error from None
        self._ledger.finish(entry, usage=usage, model=self.model, request_id="")
        return vectors

    def _call(self, texts: Sequence[str], sent: Usage) -> dict[str, Any]:
        with provider_errors(sent, refused_call):
            raw = self._client.embeddings.with_raw_response.create(
                model=self.model, input=list(texts), encoding_format="float"
            )
        return object_of(raw.content)


def _count(texts: Sequence[str]) -> int:
    return sum(estimate_tokens(text) for text in texts)


def _usage(body: dict[str, Any]) -> Usage | None:
    tokens = dict_of(body.get("usage")).get("prompt_tokens")
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        return None
    return Usage(tokens, total_tokens=tokens)


def _vectors(body: dict[str, Any], count: int) -> list[list[float]] | None:
    """The vectors in the order of the texts, or None when anything about them is wrong."""
    data = body.get("data")
    if not isinstance(data, list) or len(data) != count:
        return None
    by_index = {item.get("index"): item.get("embedding") for item in data if isinstance(item, dict)}
    vectors = [by_index.get(index) for index in range(count)]
    if not all(_is_vector(vector) for vector in vectors):
        return None
    lengths = {len(vector) for vector in vectors if vector}
    return [list(map(float, vector or ())) for vector in vectors] if len(lengths) == 1 else None


def _is_vector(value: Any) -> bool:
    return (
        isinstance(value, list)
        and 0 < len(value) <= MAX_NUMBERS
        and all(isinstance(n, int | float) and abs(n) <= MAX_COMPONENT for n in value)
        and any(value)
    )
