"""Parsing of REST request bodies."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from rest_framework.parsers import BaseParser

from core.errors import Invalid, TooLarge
from core.strict_json import JsonFault, load_object


class StrictJSONParser(BaseParser):
    """Accepts one JSON object in UTF-8 of at most MAX_BODY_BYTES."""

    media_type = "application/json"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        # Checked here, not by Content-Length: a chunked body has none.
        body = stream.read(settings.MAX_BODY_BYTES + 1)
        if len(body) > settings.MAX_BODY_BYTES:
            raise TooLarge(f"The request body is over {settings.MAX_BODY_BYTES} bytes.")
        return parse_json_object(body) if body.strip() else {}


def parse_json_object(body: bytes) -> dict[str, Any]:
    """The JSON object in these bytes. Raises Invalid for anything else."""
    try:
        return load_object(body.decode())
    except UnicodeDecodeError:
        raise Invalid("The body is not UTF-8. Send JSON in UTF-8.", code="bad_json") from None
    except JsonFault as fault:
        raise Invalid(fault.message, code="bad_json") from None
