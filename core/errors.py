"""What can go wrong, said once: each door turns these into its own kind of answer."""

from collections.abc import Mapping, Sequence


class AceError(Exception):
    """A refusal with a stable code, an HTTP status and a sentence that says what to do."""

    code = "error"
    status = 400

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        fields: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.fields = {name: list(lines) for name, lines in (fields or {}).items()}


class Invalid(AceError):
    """The input does not fit; `fields` says where."""

    code = "invalid"
    status = 400

    @classmethod
    def field(cls, name: str, message: str) -> "Invalid":
        return cls(message, fields={name: [message]})


class NotAuthenticated(AceError):
    """One text for every way in which a credential can be wrong."""

    code = "not_authenticated"
    status = 401

    def __init__(self) -> None:
        super().__init__("Send a valid API key or access token as `Authorization: Bearer …`.")


class WrongCredentials(NotAuthenticated):
    """E-mail and password do not fit; the text does not say which."""

    code = "wrong_credentials"

    def __init__(self) -> None:
        AceError.__init__(
            self,
            "No account has this e-mail and password. Check both; a new account has to be "
            "confirmed first, by the link that we e-mailed.",
        )


class SecondFactorRequired(NotAuthenticated):
    """E-mail and password fit, and the account has a second factor."""

    code = "second_factor_required"

    def __init__(self) -> None:
        AceError.__init__(
            self, "Send `code` too: six digits of the app, or one of the recovery codes."
        )


class WrongCode(NotAuthenticated):
    """The code is not the app's, is used already, or is no recovery code of this account."""

    code = "wrong_code"

    def __init__(self) -> None:
        AceError.__init__(self, "This code does not fit. Take the next one that the app shows.")


class Forbidden(AceError):
    """The caller is known and the row is theirs, but the credential may not do this."""

    code = "forbidden"
    status = 403


class NotFound(AceError):
    """There is no such row, or it is somebody else's: the text is the same."""

    code = "not_found"
    status = 404

    def __init__(
        self,
        what: str = "object",
        hint: str = "List yours to see their ids.",
        *,
        given: str = "id",
    ) -> None:
        super().__init__(f"No {what} with this {given} is yours. {hint}")


class Conflict(AceError):
    """The row is in a state that does not allow this, or somebody was faster."""

    code = "conflict"
    status = 409


class FormAlreadySubmitted(AceError):
    """The form was sent before and has done its work; its secret was shown then."""

    code = "form_already_submitted"
    status = 409


class TooLarge(AceError):
    """A text is over its limit in bytes."""

    code = "too_large"
    status = 413


class RateLimited(AceError):
    """Over a limit; `retry_after` is in whole seconds, at least 1."""

    code = "rate_limited"
    status = 429

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = max(1, retry_after)
