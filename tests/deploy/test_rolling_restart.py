"""deploy/rolling_restart.sh behind a real nginx: no request fails while both servers restart."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from django.conf import settings

from tests.harness.empty_databases import empty_database, manage
from tests.harness.postgres import free_port
from tests.harness.waiting import numbers_in, wait_until

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed"),
]
RESTART = """#!/bin/sh
set -eu
port=${1##*@}
if [ -e "$port.pid" ]; then
    pid=$(cat "$port.pid"); kill "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
fi
cd "$ROOT"
"$PYTHON" -m uvicorn config.asgi:application --port "$port" --log-level warning \\
    --no-access-log --timeout-graceful-shutdown 5 >>"$FOLDER/$port.log" 2>&1 &
echo $! >"$FOLDER/$port.pid"
"""


def nginx_conf(folder: Path, port: int, servers: list[int]) -> str:
    """The upstream and location of deploy/proxy/nginx.conf, without TLS, on our ports."""
    text = (settings.BASE_DIR / "deploy" / "proxy" / "nginx.conf").read_text()
    for shown, ours in zip((8000, 8001), servers, strict=True):
        text = text.replace(f"127.0.0.1:{shown}", f"127.0.0.1:{ours}")
    upstream = text[text.index("upstream") : text.index("server {")]
    location = text[text.index("    location / {") :]
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    server = f"server {{ listen 127.0.0.1:{port}; {location} }}"
    return (
        f"daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log; events {{}}"
        f"http {{ access_log off; {paths} {upstream} {server}"
    )


@pytest.fixture
def restart(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of the script: RESTART starts or restarts one of our servers."""
    (tmp_path / "restart.sh").write_text(RESTART)
    with empty_database(tmp_path / "data") as env:
        env |= {"ALLOWED_HOSTS": "*", "FOLDER": str(tmp_path), "PYTHON": sys.executable}
        env |= {"RESTART": f"sh {tmp_path}/restart.sh", "ROOT": str(settings.BASE_DIR)}
        manage(env, "migrate", "--verbosity", "0")
        yield env
    for file in tmp_path.glob("*.pid"):
        for pid in numbers_in(file):
            os.kill(pid, signal.SIGTERM)


def test_no_request_fails_while_both_servers_restart(
    restart: dict[str, str], tmp_path: Path
) -> None:
    servers, port = [free_port(), free_port()], free_port()
    script = ["sh", str(settings.BASE_DIR / "deploy" / "rolling_restart.sh")]
    script += [f"ace-web@{server}" for server in servers]
    subprocess.run(script, cwd=tmp_path, env=restart | {"SETTLE_SECONDS": "0"}, check=True)
    (tmp_path / "nginx.conf").write_text(nginx_conf(tmp_path, port, servers))
    nginx = subprocess.Popen(["nginx", "-c", str(tmp_path / "nginx.conf")])
    answers, ended = Counter[int](), threading.Event()

    def load() -> None:
        with httpx2.Client(
            timeout=60, trust_env=False, base_url=f"http://127.0.0.1:{port}"
        ) as client:
            while not ended.is_set():
                answers[client.get("/login").status_code] += 1
                wrong = {"email": "nobody@example.org", "password": "wrong"}
                answers[client.post("/api/v1/auth/login", json=wrong).status_code] += 1

    try:
        wait_until(lambda: _answers(port))
        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        subprocess.run(script, cwd=tmp_path, env=restart, check=True)
        ended.set()
        for thread in threads:
            thread.join(30)
    finally:
        ended.set()
        nginx.terminate()
        nginx.wait()
    print(dict(answers))  # noqa: T201 - nightly: how many there were
    assert sum(answers.values()) > 100
    assert not {status for status in answers if status >= 500}


def _answers(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/login", trust_env=False).status_code == 200
    except httpx2.HTTPError:
        return False
