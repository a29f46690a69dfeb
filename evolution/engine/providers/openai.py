"""Any OpenAI-compatible endpoint, through the `openai` SDK with everything it does by itself off.

Importing this module imports the SDK, which takes 2 to 3 s: import it where a model is called, not
at the top of a command (`evolution.worker` does so inside the function that chooses an engine).
"""

import logging
import threading
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai

from evolution.engine.llm import (
    AnswerError,
    CredentialError,
    DialectRefused,
    Ledger,
    LLMError,
    LLMReply,
    LLMRequest,
    TransientError,
    Usage,
)
from evolution.engine.providers.faults import Refusal, judge
from evolution.engine.providers.replies import NAME_LIMIT, read_reply
from evolution.engine.providers.schemas import strict_schema
from evolution.engine.providers.transport import BoundedTransport, ReplyTooLarge

MAX_REPLY_BYTES = 2 * 1024 * 1024
# At DEBUG the SDK writes whole prompts to the log; its HTTP client names every address at INFO.
for _logger in ("openai", "httpx2", "httpcore2"):
    logging.getLogger(_logger).setLevel(logging.WARNING)
SIMPLER_FORMAT = {"json_schema": "json_object", "json_object": "text"}


@dataclass(frozen=True)
class Dialect:
    """How a provider wants to be asked: the newest way first, simpler when it is refused."""

    format: str = "json_schema"
    cap: str = "max_completion_tokens"

    def parameters(self, request: LLMRequest[Any]) -> dict[str, Any]:
        return {self.cap: request.max_tokens} | self._format(request)

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
        return {"response_format": {"type": "json_schema", "json_schema": schema}}

    def simpler(self, refusal: Refusal) -> "Dialect | None":
        """The next dialect, if the refusal names something that this one uses."""
        if refusal.status not in {400, 422}:
            return None
        said = refusal.said.lower()
        names_format = any(name in said for name in ("response_format", "json_schema", "json mode"))
        if names_format and self.format in SIMPLER_FORMAT:
            return replace(self, format=SIMPLER_FORMAT[self.format])
        too_much = "too large" in said or "at most" in said
        if self.cap in said and self.cap != "max_tokens" and not too_much:
            return replace(self, cap="max_tokens")
        return None


class Failed(Exception):
    """A call came to nothing: why, and what it cost all the same."""

    def __init__(self, error: LLMError, usage: Usage, request_id: str = "") -> None:
        super().__init__(error.code)
        self.error = error
        self.usage = usage
        self.request_id = request_id


class OpenAILLM:
    """One endpoint with one key. Several threads may share it.

    `deadline`: seconds for a whole call, connection to last byte. Raises CredentialError for a
    base URL or a key that cannot be used at all.
    """

    def __init__(
        self, *, api_key: str, base_url: str | None, deadline: float, ledger: Ledger
    ) -> None:
        _check(api_key, base_url)
        self._ledger = ledger
        self._dialects: dict[str, Dialect] = {}
        self._lock = threading.Lock()
        self._client = openai.OpenAI(
            api_key=api_key,
            base_url=base_url,
            max_retries=0,
            http_client=httpx2.Client(
                transport=BoundedTransport(deadline=deadline, max_bytes=MAX_REPLY_BYTES),
                headers={"accept-encoding": "identity"},
                follow_redirects=False,
            ),
        )

    def complete(self, request: LLMRequest[Any]) -> LLMReply:
        """Make one physical call, written in the ledger before and after; raises an LLMError."""
        entry = self._ledger.begin(
            step=request.step, operation=request.operation, model=request.model
        )
        try:
            reply = self._call(request)
        except Failed as failed:
            self._ledger.finish(
                entry,
                usage=failed.usage,
                model=request.model,
                request_id=failed.request_id,
                error=failed.error.code,
            )
            raise failed.error from None
        self._ledger.finish(
            entry, usage=reply.usage, model=reply.model, request_id=reply.request_id
        )
        return reply

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
            raise _not_answered(error, request) from None
        except ReplyTooLarge:
            answer = AnswerError("reply_too_large", "The provider's reply was over 2 MB.")
            raise Failed(answer, Usage.estimate(request)) from None
        served = read_reply(raw.content, raw.headers, request)
        if served.error is not None:
            raise Failed(served.error, served.reply.usage, served.reply.request_id)
        return served.reply

    def _refused(self, error: openai.APIStatusError, model: str, dialect: Dialect) -> Failed:
        """An error status costs nothing; one that names our dialect teaches a simpler one."""
        refusal = Refusal(
            status=error.status_code,
            code=error.code or str(error.type or ""),
            said=f"{error.param} {error.message} {error.body}",
            headers=error.response.headers,
        )
        request_id = (error.request_id or "")[:NAME_LIMIT]
        simpler = dialect.simpler(refusal)
        if simpler is None:
            return Failed(judge(refusal), Usage(), request_id)
        with self._lock:
            # Calls under way are refused for the same thing: only the first one is news.
            if self._dialects.get(model, Dialect()) == dialect:
                self._dialects[model] = simpler
        message = "The provider does not know a parameter that was sent."
        return Failed(DialectRefused("dialect", message), Usage(), request_id)


def _not_answered(error: openai.APIConnectionError, request: LLMRequest[Any]) -> Failed:
    """No connection costs nothing; a call that was sent may be charged although nobody answered."""
    unsent = isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout)
    usage = Usage() if unsent else Usage.estimate(request)
    if isinstance(error, openai.APITimeoutError):
        return Failed(TransientError("timeout", "The provider did not answer in time."), usage)
    return Failed(TransientError("connection", "The provider could not be reached."), usage)


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
