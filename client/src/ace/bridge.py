"""`ace mcp`: the server as a local one, for programs that start their servers."""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO

from ace.api import Api, Refused
from ace.connect import project_folder
from ace.settings import NotConfigured

INTERNAL_ERROR = -32603


def serve(api: Api, lines: TextIO, output: TextIO) -> None:
    """Pass each message on and write its answer, until the program closes the pipe."""
    for line in lines:
        if not line.strip():
            continue
        try:
            answer = api.post("/mcp", with_repository(line).encode()).decode()
        except (Refused, NotConfigured, OSError) as error:
            answer = failure(line, str(error) or "the server cannot be reached")
        if answer.strip():
            output.write(answer.replace("\n", " ") + "\n")
            output.flush()


def with_repository(line: str) -> str:
    """The message; a list of playbooks says which of them fits the folder of the program."""
    try:
        message = json.loads(line)
        params = message["params"]
        if message["method"] != "tools/call" or params["name"] != "list_playbooks":
            return line
        given = params.get("arguments") or {}
        params["arguments"] = {"repository": project_folder().name, **given}
    except (ValueError, KeyError, TypeError, AttributeError):
        return line
    return json.dumps(message)


def failure(line: str, text: str) -> str:
    """The error as JSON-RPC, for requests; nothing answers a notification."""
    try:
        identity: Any = json.loads(line).get("id")
    except (ValueError, AttributeError):
        identity = None
    if identity is None:
        print(f"ace: {text}", file=sys.stderr)
        return ""
    return json.dumps(
        {"jsonrpc": "2.0", "id": identity, "error": {"code": INTERNAL_ERROR, "message": text}}
    )
