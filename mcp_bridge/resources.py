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

from accounts.errors import AceError
from accounts.scopes import Principal, Scope
from mcp_bridge.auth import Context
from mcp_bridge.calls import ask, refuse_cursor
from mcp_bridge.paging import take_page
from mcp_bridge.rendering import text_of
from playbooks.models import Playbook
from playbooks.services import Reading, read_playbook

SCOPE = Scope.READ
MARKDOWN = "text/markdown"
CURRENT, ONE_VERSION = "playbook://{id}", "playbook://{id}/versions/{n}"
ADDRESS = re.compile(r"playbook://(?P<id>[^/?#\s]{1,100})(?:/versions/(?P<n>[1-9][0-9]{0,8}))?")
PAGE = 50
# A version never changes; who could read it may keep it for a day.
DAY_MS = 24 * 60 * 60 * 1000
TEMPLATES = [
    ResourceTemplate(
        uri_template=CURRENT,
        name="playbook",
        title="Playbook",
        description="The advice of a playbook as it is now, and what to report it with.",
        mime_type=MARKDOWN,
    ),
    ResourceTemplate(
        uri_template=ONE_VERSION,
        name="playbook-version",
        title="Version of a playbook",
        description="The advice of a playbook as it was in one version.",
        mime_type=MARKDOWN,
    ),
]


async def list_resources(
    context: Context, params: PaginatedRequestParams | None
) -> ListResourcesResult:
    """The caller's own active playbooks, in pages; nothing for a key that may not read."""
    cursor = (params.cursor if params else None) or ""

    def own(by: Principal) -> ListResourcesResult:
        if SCOPE not in by.scopes:
            return ListResourcesResult(resources=[])
        rows = Playbook.objects.for_user(by).active()
        page = take_page(
            rows, by=by, of="resources", newest="updated_at", limit=PAGE, cursor=cursor
        )
        return ListResourcesResult(
            resources=[_resource(row) for row in page.rows], next_cursor=page.next_cursor
        )

    return await ask(context, own)


def _resource(playbook: Playbook) -> Resource:
    return Resource(
        uri=CURRENT.replace("{id}", str(playbook.pk)),
        name=playbook.name,
        title=playbook.name,
        description=playbook.description or None,
        mime_type=MARKDOWN,
    )


async def list_templates(
    context: Context, params: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    """Both templates; none for a key that may not read."""
    refuse_cursor(params)

    def usable(by: Principal) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(
            resource_templates=TEMPLATES if SCOPE in by.scopes else []
        )

    return await ask(context, usable)


async def read_resource(context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    """A playbook's text; -32602 for whatever cannot be read, with the text of the tools."""
    number = _parts(params.uri)[1]
    reading = await ask(context, lambda by: _read(by, params.uri), uri=params.uri)
    contents = TextResourceContents(
        uri=params.uri,
        mime_type=MARKDOWN,
        text=text_of(reading),
        _meta={"ace/serving_id": reading.serving_id, "ace/version": reading.version},
    )
    return ReadResourceResult(contents=[contents], ttl_ms=DAY_MS if number else 0)


def _read(by: Principal, uri: str) -> Reading:
    by.require(SCOPE)
    pk, number = _parts(uri)
    if not pk:
        message = f"Unknown resource. Read {CURRENT} or {ONE_VERSION}."
        raise AceError(message, code="not_found")
    rows = Playbook.objects.for_user(by, include_starters=True)
    playbook = rows.select_related("current_version").fetch(pk)
    return read_playbook(playbook=playbook, by=by, version=number)


def _parts(uri: str) -> tuple[str, int | None]:
    found = ADDRESS.fullmatch(uri)
    if found is None:
        return "", None
    return found["id"], int(found["n"]) if found["n"] else None
