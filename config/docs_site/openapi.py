"""drf-spectacular schema: adds error responses and scopes to every operation."""

import re
from typing import Any, Literal

from django.conf import settings
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiResponse

from core.rest.exceptions import ErrorSerializer

ERROR_DESCRIPTIONS: dict[str, str] = settings.OPENAPI["errors"]
COMMON_ERRORS = ("400", "406", "503")
REQUEST_NAME = re.compile(
    r"(Create|Update|Clone|Import|Edit|Approve|Rotate|Delete|Login|Credentials|Refresh|Close"
    r"|Report|Rollback)Request$"
)
BODY_ERRORS = ("413", "415", "429")

TAGS: dict[str, str] = settings.OPENAPI["tags"]
"""The groups of operations, in the order of the reference."""


class ApiSchema(AutoSchema):
    """Adds the responses that every operation of a kind shares, so that no view repeats them."""

    def get_description(self) -> str:  # type: ignore[override]  # as in drf-spectacular
        scope = getattr(self.view, self.view.action).scope  # type: ignore[attr-defined]  # a viewset
        access = f"Needs the scope `{scope}`." if scope else "Public."
        return f"{super().get_description()}\n\n{access}"

    def get_summary(self) -> str:
        """The first sentence of the description, without its details."""
        return re.split(r"[.:;]\s|\.$", super().get_description(), maxsplit=1)[0].strip()

    def get_tags(self) -> list[str]:
        """The last part of the path that names a group of TAGS, else its first part."""
        parts = self.path.removeprefix("/api/v1/").split("/")
        return [next((part for part in reversed(parts) if part in TAGS), parts[0])]

    def _get_serializer_name(
        self, serializer: Any, direction: Any, bypass_extensions: bool = False
    ) -> str:
        """Without the suffix `Request` where the name already says so, as in OutcomeCreate."""
        name = super()._get_serializer_name(serializer, direction, bypass_extensions)
        return REQUEST_NAME.sub(r"\1", name)

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        """Requests refuse unknown fields, at any depth."""
        schema = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]  # theirs
        return schema | {"additionalProperties": False} if direction == "request" else schema

    def _get_response_bodies(
        self, direction: Literal["request", "response"] = "response"
    ) -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        for code in self._error_codes():
            if code not in bodies:
                error = OpenApiResponse(ErrorSerializer, description=ERROR_DESCRIPTIONS[code])
                bodies[code] = self._get_response_for_code(error, code)  # type: ignore[no-untyped-call]  # theirs
        return dict(sorted(bodies.items()))

    def _error_codes(self) -> list[str]:
        codes = list(COMMON_ERRORS)
        if self.view.authentication_classes:
            codes += ["401", "403"]
        elif "auth" in self.path:
            codes.append("401")
        # Their requests name a row outside of the path.
        if re.search("{|billing|sessions|outcomes", self.path):
            codes.append("404")
        if self.method in {"POST", "PUT", "PATCH"}:
            codes += BODY_ERRORS
        if self.method != "GET":
            codes.append("409")
        return codes
