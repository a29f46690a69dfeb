"""Looks over the shoulder of /mcp: who came, through which program, and how it went."""

from functools import partial
from typing import Any

from django.db import DatabaseError
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from accounts.errors import NotAuthenticated
from accounts.http import product_of
from accounts.scopes import printable
from mcp_bridge.auth import Context, bearer_token, identify
from mcp_bridge.contacts import Contact, is_due, note_contact
from mcp_bridge.db import threads

CONTACT = "ace.contact"
MAX_TOOL = 60
NO_CONTACT = {"method_not_allowed", "unavailable"}


def contact_of(scope: Scope) -> Contact:
    """The contact of this request, to be filled in; a throw-away one where nobody watches."""
    contact = scope.get(CONTACT)
    return contact if isinstance(contact, Contact) else Contact()


def tell_refusal(context: Context, code: str) -> None:
    """What the credential may not use is a refusal of the client, not of one call."""
    if context.request is not None and code == "insufficient_scope":
        contact_of(context.request.scope).refusal = code


async def note_local(context: Context, tool: str) -> None:
    """A call on stdio says by itself that it came: there is no door to watch."""
    if context.request is None:
        await threads.run(partial(_note_local, context, tool))


def _note_local(context: Context, tool: str) -> None:
    try:
        by = identify(context)()
    except (NotAuthenticated, DatabaseError):
        return  # the call itself has told its caller
    contact = Contact(principal=by, client=by.client, tool=tool)
    if is_due(contact):
        note_contact(contact)


class Watch:
    """Notes a contact after the answer went out, so that no caller waits for it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        agent = Headers(scope=scope).get("user-agent", "")
        contact = Contact(bearer_token(scope["headers"]) or "", client=printable(product_of(agent)))
        await self.app({**scope, CONTACT: contact}, receive, send)
        if contact.refusal not in NO_CONTACT and is_due(contact):
            await threads.run(partial(note_contact, contact))


def learn(contact: Contact, message: Any) -> None:
    """Take from a JSON-RPC message what the program calls itself, and the tool that it called."""
    params = message.get("params") if isinstance(message, dict) else None
    if not isinstance(params, dict):
        return
    if message.get("method") == "tools/call":
        contact.tool = printable(str(params.get("name", "")), most=MAX_TOOL)
    named = _client_in(params)
    if named:
        contact.client = named


def _client_in(params: dict[str, Any]) -> str:
    """From `initialize`, or from the envelope that every request has since 2026-07-28."""
    meta = params.get("_meta")
    info = params.get("clientInfo")
    if isinstance(meta, dict):
        info = meta.get("io.modelcontextprotocol/clientInfo", info)
    if not isinstance(info, dict):
        return ""
    return printable(f"{info.get('name', '')} {info.get('version', '')}")
