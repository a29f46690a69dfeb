"""Real clients log in by OAuth at a running platform; a real browser does the person's part.

    python -m tests.clients.oauth_login --bin DIR/node_modules/.bin claude codex conformance

`--bin` holds `node` (22.19 or newer), and of `claude`, `codex` and `conformance` those that are
named; see docs/MCP.md for the npm line. It starts a platform of its own in a temporary folder.
`--documents` answers for claude.ai and chatgpt.com, which a machine without internet cannot ask:
then the clients are known by their documents; without it they register.
"""

import argparse
import os
import pty
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2
from playwright.sync_api import Page, sync_playwright

from tests.harness.waiting import wait_until
from tests.run import find_browser

EMAIL, PASSWORD = "oauth@example.org", "correct horse battery"
ROOT = Path(__file__).resolve().parents[2]
ADDRESS = re.compile(rb"https?://\S+/oauth/authorize\?[^\s\x1b]+")
CALLBACK_PORT = 38_123


class Terminal:
    """A command in a terminal of its own: some clients log in nowhere else."""

    def __init__(self, command: Sequence[str], env: dict[str, str]) -> None:
        self.output = b""
        main, side = pty.openpty()
        self.process = subprocess.Popen(
            command, env=env, stdin=side, stdout=side, stderr=side, start_new_session=True
        )
        os.close(side)
        self._main = main
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                self.output += os.read(self._main, 65_536)
            except OSError:
                return

    def address(self) -> str:
        """Where it wants the browser to go."""
        wait_until(lambda: ADDRESS.search(self.output) is not None, seconds=60)
        found = ADDRESS.search(self.output)
        assert found is not None
        return found[0].decode()

    def end(self) -> str:
        """The whole output, once it has ended."""
        self.process.wait(60)
        self._reader.join(5)
        return self.output.decode(errors="replace")


@contextmanager
def platform(data: Path, *, documents: bool) -> Iterator[str]:
    """The address of a platform that runs in `data`."""
    port = 38_765
    env = os.environ | {
        "ACE_DATA_DIR": str(data),
        "PORT": str(port),
        "ACE_BOOTSTRAP_EMAIL": EMAIL,
        "ACE_BOOTSTRAP_PASSWORD": PASSWORD,
        "OAUTH_CLIENT_DOCUMENTS": str(documents).lower(),
    }
    for command in (["migrate", "-v0"], ["bootstrap"]):
        subprocess.run([sys.executable, "manage.py", *command], cwd=ROOT, env=env, check=True)
    app = "tests.clients.oauth_documents:application" if documents else "config.asgi:application"
    web = [sys.executable, "-m", "uvicorn", app, "--port", str(port), "--log-level", "warning"]
    process = subprocess.Popen([*web, "--timeout-graceful-shutdown", "5"], cwd=ROOT, env=env)
    base = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: answers(base), seconds=60)
        yield base
    finally:
        process.terminate()
        process.wait(20)


def answers(base: str) -> bool:
    try:
        return httpx2.get(f"{base}/healthz", trust_env=False).status_code == 200
    except httpx2.TransportError:
        return False


def let_in(page: Page, address: str) -> str:
    """Log in if asked, read the question, say yes; what the client's own page then says."""
    page.goto(address)
    if page.get_by_label("Password").count():
        page.get_by_label("Email").fill(EMAIL)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
    print("   asked:", " · ".join(page.locator("main h1, main dl dd").all_inner_texts()))
    page.get_by_role("button", name="Connect", exact=True).click()
    page.wait_for_url(lambda url: "/oauth/authorize" not in url)
    return page.locator("body").inner_text().strip().splitlines()[0]


def run(command: Sequence[str], env: dict[str, str]) -> str:
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr


def claude(page: Page, base: str, env: dict[str, str]) -> bool:
    run(
        ["claude", "mcp", "add", "--scope", "user", "--transport", "http", "ace", f"{base}/mcp"],
        env,
    )
    terminal = Terminal(["claude", "mcp", "login", "ace"], env)
    print("   its page:", let_in(page, terminal.address()))
    print("   it says:", last_line(terminal.end()))
    listed = last_line(run(["claude", "mcp", "list"], env))
    print("   claude mcp list:", listed)
    return "✔ Connected" in listed


def codex(page: Page, base: str, env: dict[str, str]) -> bool:
    terminal = Terminal(["codex", "mcp", "add", "ace", "--url", f"{base}/mcp"], env)
    print("   its page:", let_in(page, terminal.address()))
    output = terminal.end()
    print("   it says:", last_line(output))
    print("   codex mcp list:", last_line(run(["codex", "mcp", "list"], env)))
    return "Successfully logged in" in output


def conformance(page: Page, base: str, env: dict[str, str]) -> bool:
    callback = f"http://127.0.0.1:{CALLBACK_PORT}/callback"
    sent = {
        "client_name": "conformance",
        "redirect_uris": [callback],
        "token_endpoint_auth_method": "none",
    }
    client = httpx2.post(f"{base}/oauth/register", json=sent, trust_env=False).json()
    command = ["conformance", "authorization", "--url", base, "--client-id", client["client_id"]]
    command += ["--resource", f"{base}/mcp", "--port", str(CALLBACK_PORT)]
    terminal = Terminal(command, env)
    print("   its page:", let_in(page, terminal.address()))
    output = terminal.end()
    print(
        "   "
        + "\n   ".join(line for line in output.splitlines() if re.search(r"pass|fail", line, re.I))
    )
    return terminal.process.returncode == 0


def last_line(text: str) -> str:
    """The last line that says something, without the terminal's colours and Codex's warnings."""
    bare = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    lines = [line.strip() for line in bare.splitlines()]
    return next((line for line in reversed(lines) if line and "WARNING" not in line), "")


CLIENTS = {"claude": claude, "codex": codex, "conformance": conformance}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--documents", action="store_true")
    parser.add_argument("clients", nargs="+", choices=CLIENTS)
    chosen = parser.parse_args()
    good = True
    with (
        tempfile.TemporaryDirectory() as folder,
        platform(Path(folder, "data"), documents=chosen.documents) as base,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        page = browser.new_page()
        for name in chosen.clients:
            env = environment(Path(folder, name), chosen.bin)
            print(f"{name} {last_line(run([name, '--version'], env))}")
            worked = CLIENTS[name](page, base, env)
            print(f"   {'logged in' if worked else 'FAILED'}")
            good &= worked
        page.goto(f"{base}/keys")
        for row in page.locator("section[aria-labelledby=connected-apps] tbody tr").all():
            print("keys page:", " · ".join(row.locator("th, td").all_inner_texts()[:4]))
        browser.close()
    return 0 if good else 1


def environment(home: Path, tools: Path) -> dict[str, str]:
    """A home of its own, and a browser that only writes down: the address is on the terminal."""
    home.mkdir(parents=True)
    opener = home / "xdg-open"
    opener.write_text("#!/bin/sh\nexit 0\n")
    opener.chmod(0o755)
    path = f"{home}{os.pathsep}{tools.resolve()}{os.pathsep}{os.environ['PATH']}"
    kept = {"HOME": str(home), "BROWSER": str(opener), "PATH": path, "COLUMNS": "2000"}
    return os.environ | kept | {"CODEX_HOME": str(home), "CLAUDE_CONFIG_DIR": str(home)}


if __name__ == "__main__":
    sys.exit(main())
