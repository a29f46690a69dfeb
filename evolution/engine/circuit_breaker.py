"""The circuit breaker of a provider that is down or refuses our key. Pure rules.

An address and a key have one Circuit, a row that every process shares
(`evolution.worker.llm_admission` locks it); the caller passes the database's time.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from evolution.engine.llm import CallHeldBack, CredentialError, LLMError

WINDOW = timedelta(seconds=60)
"""Calls that ended within it are counted."""
MIN_FAILURES = 5
FAILING_SHARE = 0.5
FIRST_PAUSE, MAX_PAUSE = 30.0, 600.0
"""Seconds without a call to a provider that is down; they double with each probe that fails."""
FIRST_REFUSAL_PAUSE, MAX_REFUSAL_PAUSE = 300.0, 3600.0
"""The same for a key, a quota or a model that is refused: a person has to mend it first."""
PROBE_POLL = 5.0
"""Seconds until the next try while another call's probe is under way."""
OUTAGE_CODES = frozenset({"timeout", "connection", "provider_fault", "not_a_completion"})
"""Codes that say the provider is down. A rate limit or a bad answer does not: the provider
has answered."""
REFUSAL_MESSAGES = {
    "key_refused": "The provider rejected the API key. Set a valid one.",
    "quota_used_up": "The provider's quota is used up. Add credit there, or use another key.",
    "not_allowed": ("This API key can't use the model. Use another key or model."),
    "not_found": (
        "The provider doesn't know this model or URL. Check the model name and the base URL."
    ),
    "redirected": "The base URL redirects. Set it to the redirect's target.",
}
MODEL_CODES = frozenset({"not_allowed", "not_found"})
"""Refusals of one model, which leave other models of the same key alone."""


def refusal_error(code: str, *, retry_after: float | None = None) -> CredentialError:
    """The error of a refusal, in words that a person can act on."""
    return CredentialError(code, REFUSAL_MESSAGES[code], retry_after=retry_after)


def is_failing(failures: int, calls: int) -> bool:
    """True when so many calls within WINDOW failed that the provider must be down."""
    return failures >= MIN_FAILURES and failures >= FAILING_SHARE * calls


@dataclass
class Circuit:
    """Closed (`pause` is 0): calls pass. Open: none passes until the pause is over, then one probe.

    `counted_from`: calls that ended before it count no more. `code` says why it is open.
    """

    pause: float = 0.0
    open_until: datetime | None = None
    probe_until: datetime | None = None
    counted_from: datetime | None = None
    code: str = ""

    def enter(self, now: datetime, *, longest: timedelta) -> bool:
        """Admit a call that takes `longest` at most; True when it is the probe.

        Raises CallHeldBack (`provider_down`) or CredentialError when the call must not be made.
        """
        if not self.pause:
            return False
        if self.open_until is not None and now < self.open_until:
            raise self._held((self.open_until - now).total_seconds())
        # A probe whose process died is over when its call must be.
        if self.probe_until is not None and now < self.probe_until:
            raise self._held(PROBE_POLL)
        self.probe_until = now + longest
        return True

    def leave(self, now: datetime, code: str, *, is_probe: bool, is_failing: bool) -> None:
        """Record the end of a call: its error code, empty for an answer."""
        if is_probe:
            self._end_probe(now, code)
        elif not self.pause and (code in REFUSAL_MESSAGES or is_failing):
            self._open(now, code, FIRST_REFUSAL_PAUSE if code in REFUSAL_MESSAGES else FIRST_PAUSE)

    def _end_probe(self, now: datetime, code: str) -> None:
        self.probe_until = None
        if code in REFUSAL_MESSAGES:
            longer = 2 * self.pause if self.code in REFUSAL_MESSAGES else FIRST_REFUSAL_PAUSE
            self._open(now, code, min(longer, MAX_REFUSAL_PAUSE))
        elif code in OUTAGE_CODES:
            longer = 2 * self.pause if self.code not in REFUSAL_MESSAGES else FIRST_PAUSE
            self._open(now, code, min(longer, MAX_PAUSE))
        else:
            self.pause, self.open_until, self.code, self.counted_from = 0.0, None, "", now

    def _open(self, now: datetime, code: str, pause: float) -> None:
        self.pause, self.code = pause, code
        self.open_until = now + timedelta(seconds=pause)

    def _held(self, seconds: float) -> LLMError:
        seconds = max(seconds, 1.0)
        if self.code in REFUSAL_MESSAGES:
            return refusal_error(self.code, retry_after=seconds)
        return CallHeldBack(
            "provider_down",
            "The provider has not answered for a while. It is retried automatically.",
            retry_after=seconds,
        )
