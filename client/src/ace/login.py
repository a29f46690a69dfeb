"""Log in with the browser: OAuth with PKCE, and a redirect to this machine."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import secrets
import urllib.error
import urllib.parse
import webbrowser
from typing import Any

from ace.settings import NotConfigured, login_of, send

WAIT_SECONDS = 300
PAGE = b"<!doctype html><title>ACE</title><p>You are logged in. Return to the terminal."


def log_in(url: str, *, scope: str) -> dict[str, Any]:
    """What is stored of a login at the server. Raises NotConfigured."""
    with Redirect() as redirect:
        client = register(url, redirect.address)
        verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
        digest = hashlib.sha256(verifier.encode()).digest()
        query = {
            "response_type": "code", "client_id": client, "redirect_uri": redirect.address,
            "scope": scope, "state": state, "resource": f"{url}/mcp",
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }  # fmt: skip
        address = f"{url}/oauth/authorize?{urllib.parse.urlencode(query)}"
        print(f"Log in here: {address}", flush=True)
        webbrowser.open(address)
        answer = redirect.wait()
    if answer.get("state") != state or "code" not in answer:
        raise NotConfigured(f"the login was not completed: {answer.get('error', 'no answer')}")
    tokens = post_form(
        f"{url}/oauth/token",
        grant_type="authorization_code", code=answer["code"], redirect_uri=redirect.address,
        client_id=client, code_verifier=verifier, resource=f"{url}/mcp",
    )  # fmt: skip
    return login_of(client, tokens)


def register(url: str, redirect: str) -> str:
    """The id of a new client: this program, on this machine."""
    fields = {
        "client_name": "ace", "redirect_uris": [redirect], "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
    }  # fmt: skip
    headers = {"Content-Type": "application/json"}
    made = post(f"{url}/oauth/register", json.dumps(fields).encode(), headers)
    return str(made["client_id"])


def post_form(url: str, **fields: str) -> dict[str, Any]:
    return post(url, urllib.parse.urlencode(fields).encode(), {})


def post(url: str, data: bytes, headers: dict[str, str]) -> dict[str, Any]:
    try:
        body: dict[str, Any] = json.loads(send(url, data, headers, seconds=20))
    except urllib.error.HTTPError as error:
        error.close()
        raise NotConfigured(f"the server refused the login ({error.code})") from None
    return body


class Redirect:
    """A server for the one request that the browser sends back."""

    def __enter__(self) -> Redirect:
        answers: list[dict[str, str]] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:
                """Nothing: the address holds the code."""

            def do_GET(self) -> None:
                query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
                if "state" in query:
                    answers.append(query)
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(PAGE)

        self.answers = answers
        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.server.timeout = WAIT_SECONDS
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}/callback"
        return self

    def wait(self) -> dict[str, str]:
        """The parameters of the redirect, empty after five minutes without one."""
        for _ in range(5):  # a browser may ask for an icon first
            self.server.handle_request()
            if self.answers:
                return self.answers[0]
        return {}

    def __exit__(self, *_: object) -> None:
        self.server.server_close()
