"""How each MCP client connects: the source of the connect page and docs/CLIENTS.md. Pure.

A snippet never contains a key: it refers to the variable ACE_API_KEY in the client's own syntax,
the client asks for the key, or it logs in by browser (OAuth) and needs none.
"""

from mcp_bridge.clients import desktop, terminal
from mcp_bridge.clients.definitions import Client, Snippet

__all__ = ["BY_SLUG", "CLIENTS", "Client", "Snippet"]

CLIENTS = (
    terminal.CLAUDE_CODE,
    desktop.CLAUDE_DESKTOP,
    desktop.CLAUDE_AI,
    desktop.CHATGPT,
    terminal.CODEX,
    desktop.CURSOR,
    desktop.VS_CODE,
    terminal.GEMINI_CLI,
    desktop.WINDSURF,
    desktop.ZED,
    terminal.GOOSE,
    terminal.OPENCODE,
)
BY_SLUG = {client.slug: client for client in CLIENTS}
