"""Configurations of terminal clients. Pure."""

from mcp_bridge.clients.definitions import (
    URL_PLACEHOLDER,
    VERIFY_QUESTION,
    Client,
    Snippet,
    json_snippet,
    json_snippets,
)

CLAUDE_CODE = Client(
    slug="claude-code",
    name="Claude Code",
    key=Snippet(
        "a terminal",
        "sh",
        "claude mcp add --scope user --transport http ace @ADDRESS@ \\\n"
        "  --header 'Authorization: Bearer ${ACE_API_KEY}'\n",
    ),
    login=Snippet(
        "a terminal", "sh", "claude mcp add --scope user --transport http ace @ADDRESS@\n"
    ),
    steps=(
        "Set ACE_API_KEY in the shell that starts Claude Code. The single quotes matter: its"
        " file then contains the name of the variable, not the key.",
        "Without a key, add the server without the header, start `claude`, type `/mcp`, choose ace"
        " and log in with the browser.",
    ),
    verify="claude mcp list",
    shows="ace: … (HTTP) - ✔ Connected",
    tested="2.1.197: connects, logs in; a whole session lists, reads and reports",
    notes=("The plugin in `client/` reads and reports automatically.",),
)

CODEX = Client(
    slug="codex",
    name="Codex",
    key=Snippet(
        "~/.codex/config.toml",
        "toml",
        '[mcp_servers.ace]\nurl = "@ADDRESS@"\nbearer_token_env_var = "ACE_API_KEY"\n',
    ),
    login=Snippet("a terminal", "sh", "codex mcp add ace --url @ADDRESS@\ncodex mcp login ace\n"),
    steps=(
        "Set ACE_API_KEY in the shell that starts Codex; the file contains the variable’s name.",
        "Or run `codex mcp add ace --url … --bearer-token-env-var ACE_API_KEY`.",
        "The CLI, the IDE extension and the desktop app read the same file.",
    ),
    verify=f'codex exec "{VERIFY_QUESTION}"',
    shows="mcp: ace/list_playbooks (completed)",
    tested="0.169.0: connects, logs in; a whole session lists, reads and reports",
    notes=(
        "`codex mcp list` only reads the file; it doesn’t connect.",
        "Codex cuts tool results near 10,000 tokens, so it gets the best 9,000 of a longer playbook"
        " and what was left out; `max_tokens`, `section` and `task` choose others.",
        "The plugin in `client/` reads and reports automatically.",
    ),
)

GEMINI_CLI = Client(
    slug="gemini-cli",
    name="Gemini CLI",
    **json_snippets("~/.gemini/settings.json", {"httpUrl": URL_PLACEHOLDER}, "Bearer $ACE_API_KEY"),
    steps=(
        "Set ACE_API_KEY in the shell that starts Gemini CLI; it substitutes the variable.",
        "It connects to no server in an untrusted folder: trust the folder first.",
    ),
    verify="gemini mcp list",
    shows="✓ ace: … (http) - Connected",
    tested="0.61.0: connects",
)

GOOSE_CONFIG = """\
extensions:
  ace:
    enabled: true
    type: streamable_http
    name: ace
    description: Playbooks that learn from outcomes
    uri: "@ADDRESS@"
"""
GOOSE_HEADERS = """\
    env_keys: [ACE_API_KEY]
    headers:
      Authorization: Bearer ${ACE_API_KEY}
"""
GOOSE_TIMEOUT = "    timeout: 60\n"
GOOSE = Client(
    slug="goose",
    name="Goose",
    key=Snippet(
        "~/.config/goose/config.yaml", "yaml", GOOSE_CONFIG + GOOSE_HEADERS + GOOSE_TIMEOUT
    ),
    login=Snippet("~/.config/goose/config.yaml", "yaml", GOOSE_CONFIG + GOOSE_TIMEOUT),
    steps=(
        "Merge it into `extensions`. Goose reads the variables in `env_keys` from the environment"
        " or its keyring.",
        "If your Goose doesn’t substitute variables in headers, update it or use browser login.",
    ),
    verify=f'goose run -t "{VERIFY_QUESTION}"',
    shows="list_playbooks | ace",
)

OPENCODE = Client(
    slug="opencode",
    name="opencode",
    key=json_snippet(
        "~/.config/opencode/opencode.json",
        {
            "$schema": "https://opencode.ai/config.json",
            "mcp": {
                "ace": {
                    "type": "remote",
                    "url": URL_PLACEHOLDER,
                    "enabled": True,
                    "oauth": False,
                    "headers": {"Authorization": "Bearer {env:ACE_API_KEY}"},
                }
            },
        },
    ),
    login=json_snippet(
        "~/.config/opencode/opencode.json",
        {
            "$schema": "https://opencode.ai/config.json",
            "mcp": {"ace": {"type": "remote", "url": URL_PLACEHOLDER, "enabled": True}},
        },
    ),
    steps=(
        "Set ACE_API_KEY in the shell that starts opencode; `oauth: false` keeps it from opening a"
        " browser when a key is refused.",
        "To log in instead: `opencode mcp auth ace`.",
    ),
    verify="opencode mcp list",
    shows="✓ ace connected",
    tested="1.18.33: connects",
)
