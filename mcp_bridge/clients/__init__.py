"""How each agent program is connected: the source of the connect page and docs/CLIENTS.md. Pure.

A snippet never holds a key: it names the variable ACE_API_KEY in the way in which that client reads
its environment, or it asks, or the client logs in by browser (OAuth) and needs no key at all.
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
