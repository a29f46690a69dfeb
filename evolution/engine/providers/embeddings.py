"""Embeddings of any OpenAI-compatible endpoint: one physical call, metered on both sides.

Importing this module imports the SDK; see `endpoint`.
"""

import json
from collections.abc import Sequence
from typing import Any

import openai

from core.http.deadlines import Resolve
from evolution.engine.llm import AnswerError, CredentialError, Ledger, Usage
from evolution.engine.providers.bounded_transport import ReplyTooLarge
from evolution.engine.providers.endpoint import (
    FailedCall,
    connection_failure,
    make_client,
    refusal_of,
    request_id_of,
)
from evolution.engine.providers.error_mapping import map_refusal
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
        try:
            raw = self._client.embeddings.with_raw_response.create(
                model=self.model, input=list(texts), encoding_format="float"
            )
        except openai.APIStatusError as error:
            raise FailedCall(
                map_refusal(refusal_of(error)), Usage(), request_id_of(error)
            ) from None
        except openai.APIConnectionError as error:
            raise connection_failure(error, sent) from None
        except CredentialError as error:  # of `resolve`: nothing was sent
            raise FailedCall(error, Usage()) from None
        except ReplyTooLarge:
            answer = AnswerError("reply_too_large", "The provider's reply was over 2 MB.")
            raise FailedCall(answer, sent) from None
        return _object(raw.content)


def _count(texts: Sequence[str]) -> int:
    return sum(estimate_tokens(text) for text in texts)


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _usage(body: dict[str, Any]) -> Usage | None:
    usage = body.get("usage")
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
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
