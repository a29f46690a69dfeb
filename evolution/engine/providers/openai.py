"""Models behind any OpenAI-compatible endpoint: chat completions, metered."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from core.http.deadlines import Resolve
from evolution.engine.llm import (
    CONTEXT_TOO_LONG,
    AnswerError,
    Cancelled,
    ChatRequest,
    Ledger,
    LLMError,
    LLMReply,
    LLMRequest,
    Usage,
)
from evolution.engine.providers.completion_parser import CompletionParser, events
from evolution.engine.providers.endpoint import (
    DEFAULT_BASE_URL,
    CancellableConnection,
    Endpoint,
    Refusal,
    map_refusal,
)

CAPS = ("max_completion_tokens", "max_tokens")
"""Old servers know only the second name, and answer without any cap when they get only the first;
OpenAI and Azure refuse both together."""
NEW_HOSTS = ("openai.com", "azure.com")
MIN_ROOM = 300
"""Tokens of an answer for which a prompt has to leave room in a context of known size."""
FULL_SHARE, READ_SHARE, MIN_READ = 0.5, 0.5, 1_000
"""Shares of the cap at which a reply that was cut off met a full context, and of our estimate of a
prompt over MIN_READ tokens below which the server must have left a part of it out."""
SIMPLER_FORMAT = {"json_schema": "json_object", "json_object": "text"}
MAX_DIALECTS = 4
"""Parameters that a provider may refuse before the refusal counts."""
EVENT_STREAM = "text/event-stream"
SAMPLING = ("temperature", "seed", "top_p")
OnText = Callable[[str], None]
ModelOptions = Mapping[str, Mapping[str, Any]]
"""By role (`*`: all): SAMPLING, `max_tokens`, `context` (tokens), and `extra_body`."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Dialect:
    """The parameters that a provider accepts: the newest first, simpler ones after a refusal."""

    format: str = "json_schema"
    caps: tuple[str, ...] = CAPS
    counts: bool = True
    """Whether a stream is asked to end with its usage."""

    def parameters(self, request: ChatRequest, *, streams: bool) -> dict[str, Any]:
        """What is sent beside model and messages."""
        found: dict[str, Any] = dict.fromkeys(self.caps, request.max_tokens)
        if streams:
            counts = {"stream_options": {"include_usage": True}} if self.counts else {}
            return found | {"stream": True} | counts
        if self.format == "json_object":
            found["response_format"] = {"type": "json_object"}
        elif self.format == "json_schema" and isinstance(request, LLMRequest):
            schema = {"name": request.schema_name, "strict": True, "schema": request.json_schema()}
            found["response_format"] = {"type": "json_schema", "json_schema": schema}
        return found

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
        named = [cap for cap in self.caps if cap in text]
        if not named or too_much or self.caps == CAPS[1:]:
            return None
        left = tuple(cap for cap in self.caps if cap not in named)
        return replace(self, caps=left or (CAPS[:1] if len(named) > 1 else CAPS[1:]))


class DialectRefused(LLMError):
    """The provider doesn't support a parameter that was sent. The next call leaves it out."""

    is_charged = False


class OpenAILLM:
    """One endpoint with one key. Several threads may share it; cutting the `wire` ends its call.

    `deadline`: seconds for a whole call, connection to last byte, or a function of the ledger's
    entry. `options` by role. Raises CredentialError for a base URL or a key that cannot be used.
    """

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str | None,
        deadline: float | Callable[[Any], float],
        ledger: Ledger,
        resolve: Resolve | None = None,
        wire: CancellableConnection | None = None,
        options: ModelOptions = MappingProxyType({}),
    ) -> None:
        self._options, self._deadline = options, deadline
        self._endpoint = Endpoint(api_key, base_url or DEFAULT_BASE_URL, resolve)
        self._ledger, self._wire = ledger, wire
        is_new = (urlsplit(self._endpoint.base_url).hostname or "").endswith(NEW_HOSTS)
        self._first = Dialect(caps=CAPS[:1] if is_new else CAPS)
        self._dialects: dict[str, Dialect] = {}
        self._lock = threading.Lock()

    def complete(self, request: LLMRequest[Any]) -> LLMReply:
        return self._in_accepted_dialect(request, None)

    def chat(self, request: ChatRequest, say: OnText) -> LLMReply:
        return self._in_accepted_dialect(request, say)

    def _in_accepted_dialect(self, request: ChatRequest, say: OnText | None) -> LLMReply:
        """The reply; repeated at once while it is learnt which parameters are accepted."""
        request = self._fitted(request)
        for _ in range(MAX_DIALECTS):
            try:
                return self._metered(request, say)
            except DialectRefused:
                continue
        return self._metered(request, say)

    def options_of(self, request: ChatRequest) -> dict[str, Any]:
        role = request.role if isinstance(request, LLMRequest) else "chat"
        return {**self._options.get("*", {}), **self._options.get(role, {})}

    def _fitted(self, request: ChatRequest) -> ChatRequest:
        """The request with the cap of its role; AnswerError when the context has no room for it."""
        options = self.options_of(request)
        cap = min(request.max_tokens, options.get("max_tokens", request.max_tokens))
        if context := options.get("context"):
            room = context - Usage.estimate(request).prompt_tokens
            if room < min(MIN_ROOM, cap):
                raise AnswerError(CONTEXT_TOO_LONG, "The prompt is too long for the model.")
            cap = min(cap, room)
        return replace(request, max_tokens=cap)

    def _metered(self, request: ChatRequest, say: OnText | None) -> LLMReply:
        """One physical call, written in the ledger before and after."""
        entry, parser = self._ledger.begin(request), CompletionParser(request)
        try:
            seconds = self._deadline(entry) if callable(self._deadline) else self._deadline
            self._call(request, say, parser, seconds)
        except LLMError as error:
            self._ledger.finish(entry, _charged(parser.reply, error), error.code)
            raise
        finally:
            if self._wire is not None:
                self._wire.let_go()
        self._ledger.finish(entry, parser.reply)
        _warn_of_truncation(request, parser.reply)
        return parser.reply

    def _call(
        self, request: ChatRequest, say: OnText | None, parser: CompletionParser, seconds: float
    ) -> None:
        """Ask, and fill the parser; a call whose wire was cut is `cancelled`, however it ended."""
        if self._wire is not None and self._wire.is_cut:
            raise Cancelled(is_charged=False)  # while it waited for its turn: nothing was sent
        try:
            self._ask(request, say, parser, seconds)
        except LLMError as error:
            if self._wire is not None and self._wire.is_cut:
                raise Cancelled(is_charged=error.is_charged) from None
            raise

    def _ask(
        self, request: ChatRequest, say: OnText | None, parser: CompletionParser, seconds: float
    ) -> None:
        dialect = self._dialects.get(request.model, self._first)
        parameters = dialect.parameters(request, streams=say is not None)
        options = self.options_of(request)
        chosen = {name: options[name] for name in SAMPLING if name in options}
        body = {"model": request.model, "messages": request.messages} | parameters | chosen
        if extra := options.get("extra_body"):
            body["extra_body"] = extra
        with self._endpoint.create("chat", body, seconds, self._wire) as response:
            headers = response.raw.headers
            parser.begin(headers)
            if response.is_refusal:
                raise self._simplified(request.model, dialect, response.refusal())
            # A server may not stream although it was asked to.
            if say and EVENT_STREAM in headers.get("content-type", EVENT_STREAM):
                for data in events(response.pieces()):
                    if text := parser.take(data):
                        say(text)
            elif (text := parser.read(response.body())) and say:
                say(text)
        parser.check()
        used = parser.reply.usage
        is_cut = parser.reply.finish_reason == "length" and not used.estimated
        if say is None and is_cut and used.completion_tokens < FULL_SHARE * request.max_tokens:
            raise AnswerError(CONTEXT_TOO_LONG, "The model's context was full before its answer.")

    def _simplified(self, model: str, dialect: Dialect, refusal: Refusal) -> LLMError:
        """The error of a refusal; the next call leaves out the parameter that it names."""
        simpler = dialect.simpler(refusal)
        if simpler is None:
            error = map_refusal(refusal)
            error.is_charged = False
            return error
        with self._lock:
            # Calls under way are refused for the same thing: only the first one is news.
            if self._dialects.get(model, self._first) == dialect:
                self._dialects[model] = simpler
        message = "The provider doesn't support a parameter that was sent."
        return DialectRefused("dialect", message)


def _warn_of_truncation(request: ChatRequest, reply: LLMReply) -> None:
    sent, read = Usage.estimate(request).prompt_tokens, reply.usage.prompt_tokens
    if not reply.usage.estimated and sent > MIN_READ and read < READ_SHARE * sent:
        logger.warning(
            "%s read %s of about %s tokens of the prompt: raise the server's context size, "
            "or name it in ACE_MODEL_OPTIONS",
            *(request.model, read, sent),
        )


def _charged(reply: LLMReply, error: LLMError) -> LLMReply:
    """What a failed call may cost."""
    return reply if error.is_charged else replace(reply, usage=Usage())
