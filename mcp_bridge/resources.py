"""Playbooks as resources: `playbook://{id}` and `playbook://{id}/versions/{n}`."""

import re

from mcp.types import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from core.errors import AceError
from core.security.scopes import Principal, Scope
from mcp_bridge.protocol.auth import RequestContext
from mcp_bridge.protocol.dispatch import reject_cursor, run_for_caller
from mcp_bridge.protocol.pagination import paginate
from mcp_bridge.protocol.playbook_text import render_reading
from playbooks.models import Playbook
from playbooks.services.reading import Reading, read_playbook

SCOPE = Scope.READ
MARKDOWN = "text/markdown"
PLAYBOOK_URI, VERSION_URI = "playbook://{id}", "playbook://{id}/versions/{n}"
URI_PATTERN = re.compile(r"playbook://(?P<id>[^/?#\s]{1,100})(?:/versions/(?P<n>[1-9][0-9]{0,8}))?")
PAGE_SIZE = 50
# A version never changes: a client may cache it for a day.
DAY_MS = 24 * 60 * 60 * 1000
TEMPLATES = [
    ResourceTemplate(
        uri_template=PLAYBOOK_URI,
        name="playbook",
        title="Playbook",
        description="The advice of a playbook as it is now, and what to report it with.",
        mime_type=MARKDOWN,
    ),
    ResourceTemplate(
        uri_template=VERSION_URI,
        name="playbook-version",
        title="Version of a playbook",
        description="The advice of a playbook as it was in one version.",
        mime_type=MARKDOWN,
    ),
]


async def list_resources(
    context: RequestContext, params: PaginatedRequestParams | None
) -> ListResourcesResult:
    """The caller's own active playbooks, in pages; nothing for a key that may not read."""
    cursor = (params.cursor if params else None) or ""

    def list_own(by: Principal) -> ListResourcesResult:
        if SCOPE not in by.scopes:
            return ListResourcesResult(resources=[])
        rows = Playbook.objects.for_user(by).active()
        page = paginate(
            rows, by=by, of="resources", newest="updated_at", limit=PAGE_SIZE, cursor=cursor
        )
        return ListResourcesResult(
            resources=[_resource(row) for row in page.rows], next_cursor=page.next_cursor
        )

    return await run_for_caller(context, list_own)


def _resource(playbook: Playbook) -> Resource:
    return Resource(
        uri=PLAYBOOK_URI.replace("{id}", str(playbook.pk)),
        name=playbook.name,
        title=playbook.name,
        description=playbook.description or None,
        mime_type=MARKDOWN,
    )


async def list_templates(
    context: RequestContext, params: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    """Both templates; none for a key that may not read."""
    reject_cursor(params)

    def list_usable(by: Principal) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(
            resource_templates=TEMPLATES if SCOPE in by.scopes else []
        )

    return await run_for_caller(context, list_usable)


async def read_resource(
    context: RequestContext, params: ReadResourceRequestParams
) -> ReadResourceResult:
    """A playbook's text; -32602 for anything that cannot be read, with the tools' error text."""
    number = _parse_uri(params.uri)[1]
    reading = await run_for_caller(context, lambda by: _read(by, params.uri), uri=params.uri)
    contents = TextResourceContents(
        uri=params.uri,
        mime_type=MARKDOWN,
        text=render_reading(reading),
        _meta={"ace/serving_id": reading.serving_id, "ace/version": reading.version},
    )
    return ReadResourceResult(contents=[contents], ttl_ms=DAY_MS if number else 0)


def _read(by: Principal, uri: str) -> Reading:
    by.require(SCOPE)
    pk, number = _parse_uri(uri)
    if not pk:
        message = f"Unknown resource. Read {PLAYBOOK_URI} or {VERSION_URI}."
        raise AceError(message, code="not_found")
    rows = Playbook.objects.for_user(by, include_starters=True)
    playbook = rows.select_related("current_version").fetch(pk)
    return read_playbook(playbook=playbook, by=by, version=number)


def _parse_uri(uri: str) -> tuple[str, int | None]:
    match = URI_PATTERN.fullmatch(uri)
    if match is None:
        return "", None
    return match["id"], int(match["n"]) if match["n"] else None
