"""Editors, desktop programs and web pages. Pure."""

from mcp_bridge.clients.kinds import (
    ADDRESS,
    ASK,
    SEES_NO_PROFILE,
    Client,
    address_only,
    bridge,
    json_file,
)

CLAUDE_DESKTOP = Client(
    slug="claude-desktop",
    name="Claude Desktop",
    key=json_file("claude_desktop_config.json", {"mcpServers": {"ace": bridge()}}),
    login=address_only("Settings → Connectors → Add custom connector"),
    steps=(
        "A server with a public https address: add it as a custom connector and log in; no file,"
        " no key.",
        "A server on this machine or in your network: Settings → Developer → Edit Config opens the"
        " file. It takes local programs only, so `mcp-remote` (needs Node) carries the calls.",
        "Set ACE_API_KEY for desktop programs, then quit Claude Desktop wholly and start it again.",
    ),
    verify=f"In a new chat: {ASK}",
    shows="a call of list_playbooks; the tools are behind the + button",
    tested="the bridge only: mcp-remote 0.15.1 connects with this line; the program itself not run",
    notes=(SEES_NO_PROFILE, "A connector is called from Anthropic’s network, not from yours."),
)

CLAUDE_AI = Client(
    slug="claude-ai",
    name="claude.ai",
    login=address_only("Settings → Connectors → Add custom connector"),
    steps=(
        "Add a custom connector with this address and leave the advanced fields empty.",
        "Press Connect, log in here and allow what it asks for.",
        "In a Team or Enterprise workspace an owner adds it first.",
    ),
    verify=f"In a new chat: {ASK}",
    shows="a call of list_playbooks",
    from_the_cloud=True,
)

CHATGPT = Client(
    slug="chatgpt",
    name="ChatGPT",
    login=address_only("Settings → Apps & Connectors → Create"),
    steps=(
        "Turn on Settings → Apps & Connectors → Advanced → Developer mode; in a workspace an admin"
        " allows it first.",
        "Create a connector with this address, authentication OAuth, and log in here.",
        "In a chat: + → Developer mode → ace.",
    ),
    verify=f"In a new chat: {ASK}",
    shows="a call of list_playbooks; reports ask you before they are sent",
    from_the_cloud=True,
    notes=("Which plans may use tools that write is OpenAI’s decision and has changed before.",),
)

CURSOR = Client(
    slug="cursor",
    name="Cursor",
    key=json_file(
        "~/.cursor/mcp.json",
        {
            "mcpServers": {
                "ace": {"url": ADDRESS, "headers": {"Authorization": "Bearer ${env:ACE_API_KEY}"}}
            }
        },
    ),
    login=json_file("~/.cursor/mcp.json", {"mcpServers": {"ace": {"url": ADDRESS}}}),
    steps=(
        "Merge it into the file, or into `.cursor/mcp.json` of one project.",
        "Start Cursor where ACE_API_KEY is set, then switch ace on under Customize → MCPs.",
    ),
    verify=f"In the agent’s chat: {ASK}",
    shows="a call of list_playbooks",
    notes=(SEES_NO_PROFILE,),
)

VS_CODE = Client(
    slug="vs-code",
    name="VS Code",
    key=json_file(
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
                    "url": ADDRESS,
                    "headers": {"Authorization": "Bearer ${input:ace-api-key}"},
                }
            },
        },
    ),
    login=json_file(".vscode/mcp.json", {"servers": {"ace": {"type": "http", "url": ADDRESS}}}),
    steps=(
        "For every project: “MCP: Open User Configuration” in the command palette, same content.",
        "Press Start above the server. VS Code asks for the key once and keeps it in its secret"
        " store; it also takes `${env:ACE_API_KEY}`.",
        "Open the chat in agent mode.",
    ),
    verify=f"In the agent’s chat: {ASK}",
    shows="a call of list_playbooks; “MCP: List Servers” says Running",
)

WINDSURF = Client(
    slug="windsurf",
    name="Windsurf",
    key=json_file(
        "~/.codeium/windsurf/mcp_config.json",
        {
            "mcpServers": {
                "ace": {
                    "serverUrl": ADDRESS,
                    "headers": {"Authorization": "Bearer ${env:ACE_API_KEY}"},
                }
            }
        },
    ),
    login=json_file(
        "~/.codeium/windsurf/mcp_config.json", {"mcpServers": {"ace": {"serverUrl": ADDRESS}}}
    ),
    steps=(
        "The name of the field is `serverUrl`; the `url` of other programs does not connect.",
        "Start Windsurf where ACE_API_KEY is set and press refresh in Cascade’s MCP panel.",
    ),
    verify=f"In Cascade: {ASK}",
    shows="a call of list_playbooks",
    notes=(SEES_NO_PROFILE,),
)

ZED = Client(
    slug="zed",
    name="Zed",
    key=json_file(
        "~/.config/zed/settings.json", {"context_servers": {"ace": bridge(source="custom")}}
    ),
    login=json_file("~/.config/zed/settings.json", {"context_servers": {"ace": {"url": ADDRESS}}}),
    steps=(
        "Zed sends a header as it is written and fills in no variable, so a key would stand in the"
        " file as text. `mcp-remote` (needs Node) fills it in instead.",
        "Start Zed where ACE_API_KEY is set: `zed .` in a terminal.",
    ),
    verify=f"In the agent panel: {ASK}",
    shows="a green dot beside ace in the panel’s settings",
    tested="the bridge only: mcp-remote 0.15.1 connects with this line; Zed itself not run",
    notes=("Variables in headers: zed-industries/zed, issue 60459.",),
)
