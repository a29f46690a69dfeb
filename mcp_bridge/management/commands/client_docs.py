"""`manage.py client_docs`: writes docs/CLIENTS.md from mcp_bridge/clients.toml."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from mcp_bridge.clients import CLIENTS, DESKTOP_NOTE, METHOD_TITLES, Client

EXAMPLE = "https://ace.example.org/mcp"
HEAD = f"""\
# Connecting your agent

<!-- Written by `manage.py client_docs` from mcp_bridge/clients.toml: change it there. -->

The page *Connect* shows these snippets for your server and confirms the connection within seconds.
Here the URL is `{EXAMPLE}`; `make run` serves `http://127.0.0.1:8000/mcp`.

A snippet never contains a key. Create one on the page *API keys* (scope `report`) and export
it:

```sh
export ACE_API_KEY='paste the key here'
```

Browser login needs OAuth ([MCP](MCP.md#oauth)); its snippet contains the URL only.
{DESKTOP_NOTE}

"""
ROW = "- [{name}](#{slug}): {tested}\n"


class Command(BaseCommand):
    help = "Write docs/CLIENTS.md, the snippets for every agent program; --check only compares."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="exit with 1 if out of date")

    def handle(self, *args: Any, **options: Any) -> None:
        path, text = settings.BASE_DIR / "docs" / "CLIENTS.md", client_docs()
        if not options["check"]:
            path.write_text(text)
            self.stdout.write(f"{path.name} is written.")
        elif not path.is_file() or path.read_text() != text:
            self.stderr.write("docs/CLIENTS.md is out of date: run `manage.py client_docs`.")
            raise SystemExit(1)


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
    verify = f"`{client.verify}`" if client.runs_verify else client.verify
    lines.append(f"\nVerify: {verify} → {client.shows}")
    lines += [f"\n{note}" for note in client.notes]
    return "\n".join(lines) + "\n"
