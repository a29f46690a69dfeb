"""The connection to an OpenAI-compatible endpoint, with everything that the SDK does by itself off.

Importing this module imports the SDK, which takes 2 to 3 s: import it where a model is called, not
at the top of a command (`evolution.worker` does so inside the function that chooses an engine).
"""

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai

from core.http.deadlines import Resolve
from evolution.engine.llm import (
    ChatRequest,
    CredentialError,
    Ledger,
    LLMError,
    LLMReply,
    LLMRequest,
    TransientError,
    Usage,
)
from evolution.engine.providers.bounded_transport import BoundedTransport
from evolution.engine.providers.completion_parser import NAME_LIMIT
from evolution.engine.providers.error_mapping import Refusal

MAX_REPLY_BYTES = 2 * 1024 * 1024
# At DEBUG the SDK writes whole prompts to the log; its HTTP client names every address at INFO.
for _logger in ("openai", "httpx2", "httpcore2"):
    logging.getLogger(_logger).setLevel(logging.WARNING)


class FailedCall(Exception):
    """A call came to nothing: why, and what it cost all the same."""

    def __init__(self, error: LLMError, usage: Usage, request_id: str = "") -> None:
        super().__init__(error.code)
        self.error = error
        self.usage = usage
        self.request_id = request_id


def make_client(
    *, api_key: str, base_url: str | None, deadline: float, resolve: Resolve | None = None
) -> openai.OpenAI:
    """A client of one endpoint with one key; `deadline` in seconds is for a whole call.

    `resolve` is for an address that a user chose: nothing else is connected to.

    Raises CredentialError for a base URL or a key that cannot be used at all.
    """
    transport = BoundedTransport(deadline=deadline, max_bytes=MAX_REPLY_BYTES, resolve=resolve)
    return make_client_over(transport, api_key=api_key, base_url=base_url)


def make_client_over(
    transport: BoundedTransport, *, api_key: str, base_url: str | None
) -> openai.OpenAI:
    """The same over a transport of one's own."""
    _check(api_key, base_url)
    return openai.OpenAI(
        api_key=api_key,
        base_url=base_url,
        max_retries=0,
        http_client=httpx2.Client(
            transport=transport,
            headers={"accept-encoding": "identity"},
            follow_redirects=False,
        ),
    )


def metered_call(
    ledger: Ledger, request: LLMRequest[Any] | ChatRequest, call: Callable[[], LLMReply]
) -> LLMReply:
    """What one physical call answers, written in the ledger before and after; raises an LLMError.

    `call` raises FailedCall.
    """
    entry = ledger.begin(
        step=request.step,
        operation=request.operation,
        model=request.model,
        most=Usage.most(request),
    )
    try:
        reply = call()
    except FailedCall as failed:
        ledger.finish(
            entry,
            usage=failed.usage,
            model=request.model,
            request_id=failed.request_id,
            error=failed.error.code,
        )
        raise failed.error from None
    ledger.finish(entry, usage=reply.usage, model=reply.model, request_id=reply.request_id)
    return reply


def refusal_of(error: openai.APIStatusError) -> Refusal:
    """What an error status said."""
    return Refusal(
        status=error.status_code,
        code=error.code or str(error.type or ""),
        said=f"{error.param} {error.message} {error.body}",
        headers=error.response.headers,
    )


def request_id_of(error: openai.APIStatusError) -> str:
    return (error.request_id or "")[:NAME_LIMIT]


def connection_failure(error: openai.APIConnectionError, sent: Usage) -> FailedCall:
    """No connection costs nothing; a call that was sent may be charged although nobody answered."""
    unsent = isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout)
    usage = Usage() if unsent else sent
    if isinstance(error, openai.APITimeoutError):
        return FailedCall(TransientError("timeout", "The provider did not answer in time."), usage)
    return FailedCall(TransientError("connection", "The provider could not be reached."), usage)


def _check(api_key: str, base_url: str | None) -> None:
    if not (api_key.isascii() and api_key.isprintable()):
        raise CredentialError("key_refused", "The API key has characters that no key can have.")
    if base_url is None:
        return
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise CredentialError("not_found", "The base URL is no http or https address. Check it.")
