"""The errors that services raise; pages, REST and MCP each turn them into a response."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

INVALID_LINK = "This link is invalid or has expired. Request a new one."


class AceError(Exception):
    """Base of all: a stable code, an HTTP status and a sentence that tells what to do."""

    code = "error"
    status = 400
    message = ""
    headers: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self,
        message: str = "",
        *,
        code: str | None = None,
        fields: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.message = message or self.message
        super().__init__(self.message)
        self.code = code or self.code
        self.fields = {name: list(lines) for name, lines in (fields or {}).items()}


class Invalid(AceError):
    """The input is invalid; `fields` has the messages by field."""

    code = "invalid"
    status = 400

    @classmethod
    def field(cls, name: str, message: str) -> "Invalid":
        return cls(message, fields={name: [message]})


class NotAuthenticated(AceError):
    """The credential is missing."""

    code = "not_authenticated"
    status = 401
    message = "Send an API key or access token as `Authorization: Bearer …`."


class InvalidCredential(NotAuthenticated):
    """A key or token was sent that cannot be used; the text does not reveal why."""

    message = "This API key or token is invalid: unknown, incomplete, expired or revoked."


class WrongCredentials(NotAuthenticated):
    """E-mail or password is wrong; the text does not reveal which."""

    code = "wrong_credentials"
    message = (
        "Incorrect email or password. A new account must first be confirmed with the link in our "
        "email."
    )


class SecondFactorRequired(NotAuthenticated):
    """E-mail and password are right, and the account has a second factor."""

    code = "second_factor_required"
    message = "Also send `code`: six digits from the authenticator app, or a recovery code."


class WrongCode(NotAuthenticated):
    """The code is neither a current code of the app nor an unused recovery code."""

    code = "wrong_code"
    message = "Incorrect code. Enter the next one that the app shows."


class Forbidden(AceError):
    """The caller owns the row, but the credential does not allow this."""

    code = "forbidden"
    status = 403


class NotFound(AceError):
    """The row does not exist or belongs to another user: the text is the same."""

    code = "not_found"
    status = 404

    def __init__(
        self, what: str = "object", hint: str = "List yours to find its ID.", *, given: str = "ID"
    ) -> None:
        super().__init__(f"No {what} found with this {given}. {hint}")


class Conflict(AceError):
    """The state of the row does not allow this, or another request was faster."""

    code = "conflict"
    status = 409


class TooLarge(AceError):
    """A text exceeds its limit in bytes."""

    code = "too_large"
    status = 413


class RateLimited(AceError):
    """429: `which` limit is exceeded, as a sentence; `retry_after` is in whole seconds, at least 1.

    core/ratelimit/limits.py raises it for settings.RATE_LIMITS.
    """

    code = "rate_limited"
    status = 429

    def __init__(self, which: str, *, retry_after: int) -> None:
        seconds = max(1, retry_after)
        self.headers = {"Retry-After": str(seconds)}
        super().__init__(f"{which} Try again in {seconds} s.")
