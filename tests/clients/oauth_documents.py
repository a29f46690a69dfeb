"""The platform, with an answer of its own for the documents of Claude Code and Codex.

They are written after what the clients send; the real ones are on the internet. What the platform
fetches and refuses is tested in tests/accounts/oauth/test_client_metadata_documents.py.
"""

import json

from config.asgi import application as application
from core.http import safe_http

NAMES = {
    "https://claude.ai/oauth/claude-code-client-metadata": "Claude Code",
    "https://chatgpt.com/oauth/codex/client.json": "Codex",
}
CALLBACKS = ["http://localhost/callback", "http://127.0.0.1/callback"]


def fetch(url: str, **limits: object) -> safe_http.FetchedResponse:
    if url not in NAMES:
        raise safe_http.HostUnreachable("There is no internet here.")
    document = {
        "client_id": url,
        "client_name": NAMES[url],
        "redirect_uris": CALLBACKS,
        "token_endpoint_auth_method": "none",
    }
    headers = {"content-type": "application/json"}
    return safe_http.FetchedResponse(200, headers, json.dumps(document).encode())


safe_http.fetch = fetch
