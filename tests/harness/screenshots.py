"""The pictures in docs/screenshots, and the moving one of README and landing page."""

import base64
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from tests.harness.demo_site import Demo, demo_site
from tests.run import find_browser

ROOT = Path(__file__).resolve().parents[2]
FOLDER, MOVING = ROOT / "docs" / "screenshots", ROOT / "static" / "img"
SIZE = ViewportSize(width=1120, height=760)
# What is shown, and in which theme.
PICTURES = {
    "overview": "light",
    "playbook": "light",
    "diff": "light",
    "evolution": "dark",
    "usage": "light",
    "connect": "dark",
    "evidence": "light",
    "inbox": "light",
}
# The moving picture: each page, how far down it is shown (as a share of the window), its caption.
STORY = (
    ("overview", 0.8, "Agents report how their tasks went."),
    ("diff", 0.4, "Reports become small edits, each with its reason."),
    ("evidence", 0.3, "Trials compare versions. A worse one is reverted."),
)
CAPTION = """text => {
    const box = document.body.appendChild(document.createElement("div"));
    box.textContent = text;
    box.style.cssText = "position: fixed; inset: auto 0 0; padding: 14px 20px; z-index: 9;"
        + "background: #14213d; color: #fff; font-size: 20px; font-weight: 600; text-align: center";
}"""
MOVING_SIZES = {
    "playbook": ViewportSize(width=960, height=600),
    "playbook-phone": ViewportSize(width=390, height=600),
}
QUALITY, STEPS = 78, 5
HOLD, MOVE = 2600, 60
"""Milliseconds of a frame to read and of one that only leads to the next."""
MOST_BYTES = 1_500_000


def take(demo: Demo, browser: Browser) -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, scheme in PICTURES.items():
        page = open_page(demo, browser, SIZE, scheme)
        page.goto(demo.url + demo.pages[name])
        page.screenshot(path=FOLDER / f"{name}.png")
        page.close()


def record(demo: Demo, browser: Browser) -> None:
    """A playbook that gets better, at two sizes; and its first frame, for who wants no motion."""
    for name, size in MOVING_SIZES.items():
        page = open_page(demo, browser, size, "light")
        frames = list(film(demo, page))
        page.close()
        moving = animate(frames, size)
        if len(moving) > MOST_BYTES:
            raise ValueError(f"{name}: {len(moving)} bytes are too many")
        (MOVING / f"{name}.webp").write_bytes(moving)
        (MOVING / f"{name}-still.webp").write_bytes(frames[0][0])


def film(demo: Demo, page: Page) -> Iterator[tuple[bytes, int]]:
    """Each frame as WebP, and how long it is shown."""
    shot = {"format": "webp", "quality": QUALITY}
    camera = page.context.new_cdp_session(page)
    for name, share, caption in STORY:
        page.goto(demo.url + demo.pages[name])
        page.evaluate(CAPTION, caption)
        for step in range(STEPS + 1):
            down = f"scrollTo(0, innerHeight * {share} * {step / STEPS})"
            page.evaluate(f"() => new Promise(done => {{ {down}; requestAnimationFrame(done) }})")
            data = base64.b64decode(camera.send("Page.captureScreenshot", shot)["data"])
            yield data, HOLD if step in {0, STEPS} else MOVE


def animate(frames: list[tuple[bytes, int]], size: ViewportSize) -> bytes:
    """One animated WebP that repeats for ever (developers.google.com/speed/webp/docs)."""
    area = _number(size["width"] - 1) + _number(size["height"] - 1)
    parts = [_chunk(b"VP8X", b"\2\0\0\0" + area), _chunk(b"ANIM", b"\xff\xff\xff\xff\0\0")]
    for data, duration in frames:
        # A frame has the chunk of the picture, and not those of its colour profile.
        picture = data[data.index(b"VP8 ") :]
        parts.append(_chunk(b"ANMF", bytes(6) + area + _number(duration) + b"\2" + picture))
    return _chunk(b"RIFF", b"WEBP" + b"".join(parts))


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def _number(value: int) -> bytes:
    return value.to_bytes(3, "little")


def open_page(demo: Demo, browser: Browser, size: ViewportSize, scheme: str) -> Page:
    page = browser.new_page(color_scheme=scheme, viewport=size)  # type: ignore[arg-type]  # literals in a table
    page.context.add_cookies([{"name": "sessionid", "value": demo.cookie, "url": demo.url}])
    return page


def main() -> int:
    if find_browser() is None:
        print("There is no Chromium on this machine.")
        return 1
    with demo_site() as demo, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        take(demo, browser)
        record(demo, browser)
        browser.close()
    for picture in sorted([*FOLDER.glob("*.png"), *MOVING.glob("*.webp")]):
        print(f"{picture.stat().st_size / 1024:6.1f} KiB  {picture.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
