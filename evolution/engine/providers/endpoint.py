"""The client of an OpenAI-compatible endpoint, without the retries and redirects of the SDK.

Importing this module imports the SDK, which takes 2 to 3 s: import it where a model is called, not
at the top of a command (`evolution.worker` does so inside the function that chooses an engine).
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx2
import openai

from core.http.deadlines import Resolve
from evolution.engine.llm import (
    AnswerError,
    ChatRequest,
    CredentialError,
    Ledger,
    LLMError,
    LLMReply,
    TransientError,
    Usage,
)
from evolution.engine.providers.bounded_transport import BoundedTransport, ReplyTooLarge
from evolution.engine.providers.completion_parser import NAME_LIMIT
from evolution.engine.providers.error_mapping import Refusal, map_refusal

MAX_REPLY_BYTES = 2 * 1024 * 1024
# At DEBUG the SDK writes whole prompts to the log; its HTTP client names every address at INFO.
for _logger in ("openai", "httpx2", "httpcore2"):
    logging.getLogger(_logger).setLevel(logging.WARNING)


class FailedCall(Exception):
    """A failed call: its error, and the tokens it cost."""

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
    """A client over the given transport; raises CredentialError as make_client does."""
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


def metered_call(ledger: Ledger, request: ChatRequest, call: Callable[[], LLMReply]) -> LLMReply:
    """The reply of one physical call, written in the ledger before and after; raises an LLMError.

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


@contextmanager
def provider_errors(
    sent: Usage, refused: Callable[[openai.APIStatusError], FailedCall]
) -> Iterator[None]:
    """Raise the errors of a call as FailedCall; `refused` makes one of an error status."""
    try:
        yield
    except openai.APIStatusError as error:
        raise refused(error) from None
    except openai.APIConnectionError as error:
        raise connection_failure(error, sent) from None
    except CredentialError as error:  # of `resolve`: nothing was sent
        raise FailedCall(error, Usage()) from None
    except ReplyTooLarge:
        raise FailedCall(reply_too_large(), sent) from None


def reply_too_large() -> AnswerError:
    return AnswerError("reply_too_large", "The provider's reply was over 2 MB.")


def refused_call(error: openai.APIStatusError) -> FailedCall:
    """An error status as a failed call, which costs nothing."""
    return FailedCall(map_refusal(refusal_of(error)), Usage(), request_id_of(error))


def refusal_of(error: openai.APIStatusError) -> Refusal:
    """The status, code, text and headers of an error."""
    return Refusal(
        status=error.status_code,
        code=error.code or str(error.type or ""),
        text=f"{error.param} {error.message} {error.body}",
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
