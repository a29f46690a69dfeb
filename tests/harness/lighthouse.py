"""Lighthouse on the main pages: `python -m tests.harness.lighthouse` (`make lighthouse`).

The desktop preset, the median of three runs each, logged in, static files as in
production. Lighthouse comes by npx, with the Chromium of this machine. Run it where nothing else
runs: the score for performance is a measurement of time.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.harness.demo_site import Demo, demo_site
from tests.run import find_browser

LIGHTHOUSE = "lighthouse@12"
RUNS = 3
LEAST = {"performance": 95, "accessibility": 100, "best-practices": 100}
MOST_KIB, MOST_SHIFT = 100.0, 0.1
FLAGS = ["--no-sandbox", "--disable-gpu"]


@dataclass(frozen=True)
class Result:
    """One page: the median scores, its weight, how far its layout moved, what is to be mended."""

    page: str
    scores: dict[str, int]
    kib: float
    shift: float
    failed: list[str]

    @property
    def is_good(self) -> bool:
        enough = all(self.scores[name] >= least for name, least in LEAST.items())
        return enough and self.kib <= MOST_KIB and self.shift < MOST_SHIFT


def look(demo: Demo, page: str, folder: Path) -> Result:
    reports = [_run(demo, page, folder / f"{page}-{number}.json") for number in range(RUNS)]
    return Result(
        page,
        {
            name: round(_median(100 * r["categories"][name]["score"] for r in reports))
            for name in LEAST
        },
        _median(_value(report, "total-byte-weight") / 1024 for report in reports),
        _median(_value(report, "cumulative-layout-shift") for report in reports),
        sorted({name for report in reports for name in _failed(report)}),
    )


def _run(demo: Demo, page: str, file: Path) -> dict[str, Any]:
    """One report, from a browser of its own that holds the session's cookie.

    A header in place of it would be left out of what the page's scripts ask for.
    """
    port = _free_port()
    command = ["npx", "--yes", LIGHTHOUSE, demo.url + demo.pages[page], "--preset=desktop"]
    command += [f"--only-categories={','.join(LEAST)}", "--output=json", f"--output-path={file}"]
    command += ["--quiet", f"--port={port}", "--disable-storage-reset"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            file.with_suffix(".profile"),
            executable_path=find_browser(),
            args=[*FLAGS, f"--remote-debugging-port={port}"],
        )
        browser.add_cookies([{"name": "sessionid", "value": demo.cookie, "url": demo.url}])
        environment = os.environ | {"PUPPETEER_SKIP_DOWNLOAD": "1"}
        # On a busy machine it now and then misses the start of a page load, and says so.
        first = subprocess.run(command, env=environment, check=False, timeout=300)
        if first.returncode:
            subprocess.run(command, env=environment, check=True, timeout=300)
        browser.close()
    report: dict[str, Any] = json.loads(file.read_text())
    return report


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _median(values: Any) -> float:
    return float(statistics.median(values))


def _value(report: dict[str, Any], audit: str) -> float:
    return float(report["audits"][audit]["numericValue"])


def _failed(report: dict[str, Any]) -> list[str]:
    """The audits that cost points in accessibility and best practices."""
    names = [
        part["id"]
        for category in ("accessibility", "best-practices")
        for part in report["categories"][category]["auditRefs"]
        if part["weight"]
    ]
    return [name for name in names if report["audits"][name]["score"] == 0]


def main() -> int:
    if find_browser() is None:
        print("There is no Chromium on this machine.")
        return 1
    good = True
    with tempfile.TemporaryDirectory() as folder, demo_site() as demo:
        for page in sys.argv[1:] or demo.pages:
            result = look(demo, page, Path(folder))
            good = good and result.is_good
            scores = "  ".join(f"{name} {score}" for name, score in result.scores.items())
            print(f"{page:10} {scores}  {result.kib:.1f} KiB  CLS {result.shift:.3f}", flush=True)
            if result.failed:
                print(f"{'':10} failed: {', '.join(result.failed)}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
