"""docs/CLIENTS.md from the same source as the connect page. Pure."""

from mcp_bridge.clients import CLIENTS
from mcp_bridge.clients.definitions import DESKTOP_ENVIRONMENT_NOTE, METHOD_TITLES, Client

EXAMPLE = "https://ace.example.org/mcp"
HEAD = f"""\
# Connecting your agent

<!-- Written by `manage.py client_docs` from mcp_bridge/clients: change it there. -->

The page *Connect* shows these snippets for your server and confirms the connection within seconds.
Here the URL is `{EXAMPLE}`; `make run` serves `http://127.0.0.1:8000/mcp`.

A snippet never contains a key. Create one on the page *API keys* (scope `report`) and export
it:

```sh
export ACE_API_KEY='paste the key here'
```

Browser login needs OAuth ([MCP](MCP.md#oauth)); its snippet contains the URL only.
{DESKTOP_ENVIRONMENT_NOTE}

"""
ROW = "- [{name}](#{slug}): {tested}\n"


def client_docs() -> str:
    """The text of docs/CLIENTS.md."""
    table = "Verified with the real client:\n\n"
    for client in CLIENTS:
        slug, tested = client.name.lower().replace(" ", "-").replace(".", ""), client.tested
        table += ROW.format(name=client.name, slug=slug, tested=tested or "not verified")
    return HEAD + table + "".join(_section(client) for client in CLIENTS)


def _section(client: Client) -> str:
    lines = [f"\n## {client.name}\n"]
    lines += [f"{number}. {step}" for number, step in enumerate(client.steps, 1)]
    if client.needs_public_url:
        lines.append("\nIt connects from its vendor’s network and needs a public HTTPS address.")
    for method, snippet in client.snippets.items():
        code = "" if snippet.format == "text" else snippet.format
        lines.append(f"\n{METHOD_TITLES[method]} ({snippet.place}):\n")
        lines.append(f"```{code}\n{snippet.fill(EXAMPLE)}```")
    lines.append(f"\nVerify: {_verify(client)} → {client.shows}")
    lines += [f"\n{note}" for note in client.notes if note != DESKTOP_ENVIRONMENT_NOTE]
    return "\n".join(lines) + "\n"


def _verify(client: Client) -> str:
    return f"`{client.verify}`" if client.runs_verify else client.verify
