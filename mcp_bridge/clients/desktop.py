"""Editors, desktop programs and web pages. Pure."""

from mcp_bridge.clients.definitions import (
    DESKTOP_ENVIRONMENT_NOTE,
    URL_PLACEHOLDER,
    VERIFY_QUESTION,
    Client,
    json_snippet,
    mcp_remote_config,
    url_snippet,
)

CLAUDE_DESKTOP = Client(
    slug="claude-desktop",
    name="Claude Desktop",
    key=json_snippet("claude_desktop_config.json", {"mcpServers": {"ace": mcp_remote_config()}}),
    login=url_snippet("Settings → Connectors → Add custom connector"),
    steps=(
        "A server with a public https address: add it as a custom connector and log in; no file,"
        " no key.",
        "A server on this machine or in your network: Settings → Developer → Edit Config opens the"
        " file. It takes local programs only, so `mcp-remote` (needs Node) carries the calls.",
        "Set ACE_API_KEY for desktop programs, then quit Claude Desktop wholly and start it again.",
    ),
    verify=f"In a new chat: {VERIFY_QUESTION}",
    shows="a call of list_playbooks; the tools are behind the + button",
    tested="the bridge only: mcp-remote 0.15.1 connects with this line; the program itself not run",
    notes=(
        DESKTOP_ENVIRONMENT_NOTE,
        "A connector is called from Anthropic’s network, not from yours.",
    ),
)

CLAUDE_AI = Client(
    slug="claude-ai",
    name="claude.ai",
    login=url_snippet("Settings → Connectors → Add custom connector"),
    steps=(
        "Add a custom connector with this address and leave the advanced fields empty.",
        "Press Connect, log in here and allow what it asks for.",
        "In a Team or Enterprise workspace an owner adds it first.",
    ),
    verify=f"In a new chat: {VERIFY_QUESTION}",
    shows="a call of list_playbooks",
    needs_public_url=True,
)

CHATGPT = Client(
    slug="chatgpt",
    name="ChatGPT",
    login=url_snippet("Settings → Apps & Connectors → Create"),
    steps=(
        "Turn on Settings → Apps & Connectors → Advanced → Developer mode; in a workspace an admin"
        " allows it first.",
        "Create a connector with this address, authentication OAuth, and log in here.",
        "In a chat: + → Developer mode → ace.",
    ),
    verify=f"In a new chat: {VERIFY_QUESTION}",
    shows="a call of list_playbooks; reports ask you before they are sent",
    needs_public_url=True,
    notes=("Which plans may use tools that write is OpenAI’s decision and has changed before.",),
)

CURSOR = Client(
    slug="cursor",
    name="Cursor",
    key=json_snippet(
        "~/.cursor/mcp.json",
        {
            "mcpServers": {
                "ace": {
                    "url": URL_PLACEHOLDER,
                    "headers": {"Authorization": "Bearer ${env:ACE_API_KEY}"},
                }
            }
        },
    ),
    login=json_snippet("~/.cursor/mcp.json", {"mcpServers": {"ace": {"url": URL_PLACEHOLDER}}}),
    steps=(
        "Merge it into the file, or into `.cursor/mcp.json` of one project.",
        "Start Cursor where ACE_API_KEY is set, then switch ace on under Customize → MCPs.",
    ),
    verify=f"In the agent’s chat: {VERIFY_QUESTION}",
    shows="a call of list_playbooks",
    notes=(DESKTOP_ENVIRONMENT_NOTE,),
)

VS_CODE = Client(
    slug="vs-code",
    name="VS Code",
    key=json_snippet(
        ".vscode/mcp.json",
        {
            "inputs": [
                {
                    "type": "promptString",
                    "id": "ace-api-key",
                    "description": "ACE API key",
                    "password": True,
                }
            ],
            "servers": {
                "ace": {
                    "type": "http",
                    "url": URL_PLACEHOLDER,
                    "headers": {"Authorization": "Bearer ${input:ace-api-key}"},
                }
            },
        },
    ),
    login=json_snippet(
        ".vscode/mcp.json", {"servers": {"ace": {"type": "http", "url": URL_PLACEHOLDER}}}
    ),
    steps=(
        "For every project: “MCP: Open User Configuration” in the command palette, same content.",
        "Press Start above the server. VS Code asks for the key once and keeps it in its secret"
        " store; it also takes `${env:ACE_API_KEY}`.",
        "Open the chat in agent mode.",
    ),
    verify=f"In the agent’s chat: {VERIFY_QUESTION}",
    shows="a call of list_playbooks; “MCP: List Servers” says Running",
)

WINDSURF = Client(
    slug="windsurf",
    name="Windsurf",
    key=json_snippet(
        "~/.codeium/windsurf/mcp_config.json",
        {
            "mcpServers": {
                "ace": {
                    "serverUrl": URL_PLACEHOLDER,
                    "headers": {"Authorization": "Bearer ${env:ACE_API_KEY}"},
                }
            }
        },
    ),
    login=json_snippet(
        "~/.codeium/windsurf/mcp_config.json",
        {"mcpServers": {"ace": {"serverUrl": URL_PLACEHOLDER}}},
    ),
    steps=(
        "The name of the field is `serverUrl`; the `url` of other programs does not connect.",
        "Start Windsurf where ACE_API_KEY is set and press refresh in Cascade’s MCP panel.",
    ),
    verify=f"In Cascade: {VERIFY_QUESTION}",
    shows="a call of list_playbooks",
    notes=(DESKTOP_ENVIRONMENT_NOTE,),
)

ZED = Client(
    slug="zed",
    name="Zed",
    key=json_snippet(
        "~/.config/zed/settings.json",
        {"context_servers": {"ace": mcp_remote_config(source="custom")}},
    ),
    login=json_snippet(
        "~/.config/zed/settings.json", {"context_servers": {"ace": {"url": URL_PLACEHOLDER}}}
    ),
    steps=(
        "Zed sends a header as it is written and fills in no variable, so a key would stand in the"
        " file as text. `mcp-remote` (needs Node) fills it in instead.",
        "Start Zed where ACE_API_KEY is set: `zed .` in a terminal.",
    ),
    verify=f"In the agent panel: {VERIFY_QUESTION}",
    shows="a green dot beside ace in the panel’s settings",
    tested="the bridge only: mcp-remote 0.15.1 connects with this line; Zed itself not run",
    notes=("Variables in headers: zed-industries/zed, issue 60459.",),
)
