"""The OpenAPI document's own rules: every route names its refusals and its Idempotency-Key."""

import re
from typing import Any, Literal

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from core.rest.serializers import ErrorSerializer

ERROR_DESCRIPTIONS = {
    "400": "Something sent does not fit; `fields` says what.",
    "401": "No valid credential.",
    "403": "The credential lacks the scope, or may not do this.",
    "404": "There is no such row, or it is not yours.",
    "406": "Only JSON is to be had.",
    "409": "The row's state does not allow it, or an Idempotency-Key was used before.",
    "413": "A text or the body is over its limit.",
    "415": "Send `application/json`.",
    "429": "Over a limit; `Retry-After` says for how many seconds.",
    "503": "The database is busy; `Retry-After` says for how many seconds.",
}
COMMON_ERRORS = ("400", "406", "503")
OWN_BODY = re.compile(
    r"(Create|Update|Clone|Import|Edit|Approve|Rotate|Delete|Login|Credentials|Refresh|Close|Report|Rollback)Request$"
)
BODY_ERRORS = ("413", "415", "429")


class ApiSchema(AutoSchema):
    """Adds to each route what all of its kind can answer, so that no view repeats it."""

    def get_override_parameters(self) -> list[Any]:
        parameters = list(super().get_override_parameters())
        if getattr(self._handler(), "is_idempotent", False):
            parameters.append(
                OpenApiParameter(
                    "Idempotency-Key",
                    str,
                    OpenApiParameter.HEADER,
                    description="Repeat a request with the same key and get the same answer.",
                )
            )
        return parameters

    def get_description(self) -> str:  # type: ignore[override]  # as in drf-spectacular
        scope = getattr(self.view, "scopes", {}).get(self.method)
        needs = f"Needs the scope `{scope}`." if scope else "Public."
        return f"{super().get_description()}\n\n{needs}"

    def get_tags(self) -> list[str]:
        """The first word after /api/v1."""
        return [self.path.removeprefix("/api/v1/").split("/")[0]]

    def _get_serializer_name(
        self, serializer: Any, direction: Any, bypass_extensions: bool = False
    ) -> str:
        """Bodies with serializers of their own, such as OutcomeCreate, get no suffix `Request`."""
        name = super()._get_serializer_name(serializer, direction, bypass_extensions)
        return OWN_BODY.sub(r"\1", name)

    def _handler(self) -> Any:
        return getattr(self.view, self.method.lower(), None)

    def _get_response_bodies(
        self, direction: Literal["request", "response"] = "response"
    ) -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        for code in self._refusals():
            if code not in bodies:
                refusal = OpenApiResponse(ErrorSerializer, description=ERROR_DESCRIPTIONS[code])
                bodies[code] = self._get_response_for_code(refusal, code)  # type: ignore[no-untyped-call]  # theirs
        return dict(sorted(bodies.items()))

    def _refusals(self) -> list[str]:
        codes = list(COMMON_ERRORS)
        if self.view.authentication_classes:
            codes += ["401", "403"]
        elif "auth" in self.path:
            codes.append("401")
        if "{" in self.path or "billing" in self.path:
            codes.append("404")
        if self.method in {"POST", "PUT", "PATCH"}:
            codes += BODY_ERRORS
        if self.method != "GET":
            codes.append("409")
        return codes
