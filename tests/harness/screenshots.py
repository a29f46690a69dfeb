"""The pictures in docs/screenshots: `python -m tests.harness.screenshots`."""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.harness.demo_site import Demo, demo_site
from tests.run import find_browser

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
SIZE = {"width": 1120, "height": 760}
# What is shown, and in which theme.
PICTURES = {
    "overview": "light",
    "playbook": "light",
    "diff": "light",
    "evolution": "dark",
    "usage": "light",
    "connect": "dark",
    "evidence": "light",
}


def take(demo: Demo) -> None:
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        for name, scheme in PICTURES.items():
            page = browser.new_page(color_scheme=scheme, viewport=SIZE)  # type: ignore[arg-type]  # literals in a table
            page.context.add_cookies([{"name": "sessionid", "value": demo.cookie, "url": demo.url}])
            page.goto(demo.url + demo.pages[name])
            page.screenshot(path=FOLDER / f"{name}.png")
            page.close()
        browser.close()


def main() -> int:
    if find_browser() is None:
        print("There is no Chromium on this machine.")
        return 1
    with demo_site() as demo:
        take(demo)
    for picture in sorted(FOLDER.glob("*.png")):
        print(f"{picture.stat().st_size / 1024:6.1f} KiB  {picture.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
