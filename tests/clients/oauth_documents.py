"""The platform, with an answer of its own for the documents of Claude Code and Codex.

They are written after what the clients send; the real ones are on the internet. That the platform
really fetches, and from where it does not, is in tests/oauth/test_documents.py.
"""

import json

from accounts import outbound
from config.asgi import application as application

NAMES = {
    "https://claude.ai/oauth/claude-code-client-metadata": "Claude Code",
    "https://chatgpt.com/oauth/codex/client.json": "Codex",
}
CALLBACKS = ["http://localhost/callback", "http://127.0.0.1/callback"]


def fetch(url: str, **limits: object) -> outbound.Fetched:
    if url not in NAMES:
        raise outbound.Unreachable("There is no internet here.")
    document = {
        "client_id": url,
        "client_name": NAMES[url],
        "redirect_uris": CALLBACKS,
        "token_endpoint_auth_method": "none",
    }
    headers = {"content-type": "application/json"}
    return outbound.Fetched(200, headers, json.dumps(document).encode())


outbound.fetch = fetch
