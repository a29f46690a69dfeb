"""Configurations of editors, desktop apps and web apps. Pure."""

from mcp_bridge.clients.definitions import (
    DESKTOP_ENVIRONMENT_NOTE,
    URL_PLACEHOLDER,
    VERIFY_QUESTION,
    Client,
    json_snippet,
    json_snippets,
    mcp_remote_config,
    url_snippet,
)

CLAUDE_DESKTOP = Client(
    slug="claude-desktop",
    name="Claude Desktop",
    key=json_snippet("claude_desktop_config.json", {"mcpServers": {"ace": mcp_remote_config()}}),
    login=url_snippet("Settings → Connectors → Add custom connector"),
    steps=(
        "For a server with a public HTTPS address, add a custom connector and log in; you need no"
        " file and no key.",
        "For a server on this machine or in your network, open the file with Settings → Developer →"
        " Edit Config. It supports local servers only: `mcp-remote` (needs Node) connects to it.",
        "Set ACE_API_KEY for desktop apps, then quit Claude Desktop completely and start it again.",
    ),
    verify=f"In a new chat: {VERIFY_QUESTION}",
    shows="a call of list_playbooks; the tools are behind the + button",
    tested="mcp-remote 0.15.1, which connects with this configuration; the app itself not run",
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
        "Add a custom connector with this URL and leave the advanced fields empty.",
        "Click Connect, log in and approve the request.",
        "In a Team or Enterprise workspace, an owner has to add it first.",
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
        "Turn on Settings → Apps & Connectors → Advanced → Developer mode; in a workspace, an admin"
        " has to allow it first.",
        "Create a connector with this URL and OAuth authentication, and log in.",
        "In a chat: + → Developer mode → ace.",
    ),
    verify=f"In a new chat: {VERIFY_QUESTION}",
    shows="a call of list_playbooks; ChatGPT asks before it sends a report",
    needs_public_url=True,
    notes=("OpenAI decides which plans can use tools that write; that has changed before.",),
)

CURSOR = Client(
    slug="cursor",
    name="Cursor",
    **json_snippets("~/.cursor/mcp.json", {"url": URL_PLACEHOLDER}, "Bearer ${env:ACE_API_KEY}"),
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
        "For all projects, run “MCP: Open User Configuration” in the command palette instead.",
        "Click Start above the server. VS Code asks for the key once and keeps it in its secret"
        " store; it also takes `${env:ACE_API_KEY}`.",
        "Open the chat in agent mode.",
    ),
    verify=f"In the agent’s chat: {VERIFY_QUESTION}",
    shows="a call of list_playbooks; “MCP: List Servers” says Running",
)

WINDSURF = Client(
    slug="windsurf",
    name="Windsurf",
    **json_snippets(
        "~/.codeium/windsurf/mcp_config.json",
        {"serverUrl": URL_PLACEHOLDER},
        "Bearer ${env:ACE_API_KEY}",
    ),
    steps=(
        "The field is `serverUrl`; `url`, as in other clients, does not work.",
        "Start Windsurf where ACE_API_KEY is set and click refresh in Cascade’s MCP panel.",
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
        "Zed doesn’t substitute variables in headers, so the file would contain the key."
        " `mcp-remote` (needs Node) substitutes it instead.",
        "Start Zed where ACE_API_KEY is set: `zed .` in a terminal.",
    ),
    verify=f"In the agent panel: {VERIFY_QUESTION}",
    shows="a green dot beside ace in the panel’s settings",
    tested="mcp-remote 0.15.1, which connects with this configuration; Zed itself not run",
    notes=("Variables in headers: zed-industries/zed, issue 60459.",),
)
