"""What must never happen on a page, written down as it happens."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

from playwright.sync_api import ConsoleMessage, Page, Request, Response, ViewportSize

AXE = (Path(__file__).parents[1] / "browser" / "vendor" / "axe" / "axe.min.js").read_text()
RUN_AXE = """async (preload) => (await axe.run(document, {
    preload,
    resultTypes: ["violations"],
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
})).violations.map(v => `${v.id}: ` + v.nodes.map(n => n.target.join(" ")).join(" | "))"""
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Django's admin fades colours all the same, and on a busy machine for long.
SETTLED = """() => Promise.all(document.getAnimations()
    .filter(one => one instanceof CSSTransition).map(one => one.finished.catch(() => null)))"""
EVERY_LOOK = (("dark", 360), ("light", 360), ("dark", 1280), ("light", 1280))
# `make nightly` and `make looks` take every look; else each theme and each width is seen once.
EVERY = bool(os.environ.get("ACE_EVERY_LOOK"))
VIEWPORTS = EVERY_LOOK if EVERY else EVERY_LOOK[1:3]
# Where to keep pictures for people to look at; nothing is kept when it is not set.
PICTURES = os.environ.get("ACE_SCREENSHOTS", "")


class BrowserPage:
    """Collects console errors, policy violations, failed and external requests, overflow."""

    def __init__(self, page: Page, base: str) -> None:
        self.page, self.base = page, base
        self.faults: list[str] = []
        self.expected = 200
        # Off for Django's admin: axe would inline the style sheets that its own import.
        self.preload = True
        self.pictures = 0
        page.on("console", self._console)
        page.on("pageerror", lambda error: self._note(f"script error: {error}"))
        page.on("requestfailed", self._failed)
        page.on("request", self._request)
        page.on("response", self._response)

    def open(self, address: str, *, status: int = 200, axe: bool = True) -> None:
        """Go there and look at what it shows."""
        self.go(address, status=status)
        self.look(address, axe=axe)

    def go(self, address: str, *, status: int = 200) -> None:
        """Go there; errors, violations and requests are noted, how it looks is not."""
        self.expected = status
        self.page.goto(self.base + address)

    @property
    def width(self) -> int:
        return self.page.viewport_size["width"] if self.page.viewport_size else 0

    @property
    def is_dark(self) -> bool:
        query = "() => matchMedia('(prefers-color-scheme: dark)').matches"
        return bool(self.page.evaluate(query))

    def look(self, name: str, *, axe: bool = True) -> None:
        """Check the page as it stands; `name` is for faults and pictures."""
        # A click may have left for another page, whose document is still empty.
        self.page.wait_for_load_state()
        self.page.evaluate(SETTLED)
        over = self.page.evaluate(OVERFLOW)
        if over > 0:
            self._note(f"{name}: {over} px wider than the window")
        if axe:
            # By the debugger and not by a script element: the page's policy stays as it is.
            if not self.page.evaluate("() => 'axe' in window"):
                self.page.evaluate(AXE)
            self.faults += [
                f"{name}: axe {found}" for found in self.page.evaluate(RUN_AXE, self.preload)
            ]
        self.picture(name)

    def look_each(self, name: str, looks: Iterable[tuple[str, int]] = VIEWPORTS) -> None:
        """The same state in each theme and at each width; ends as wide as it began.

        With axe, which takes half a second, in one of them: which one goes by the name.
        """
        before, looks = self.page.viewport_size, list(looks)
        chosen = crc32(name.encode()) % len(looks)
        for number, (scheme, width) in enumerate(looks):
            self.look_as(name, scheme, width, axe=EVERY or number == chosen)
        if before:
            self.page.set_viewport_size(before)

    def look_as(self, name: str, scheme: str, width: int, *, axe: bool = True) -> None:
        """In this theme and at this width, which stay."""
        # Without motion: a colour half-way to the other theme is nobody's contrast.
        self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]  # one of its words
        if self.page.viewport_size != (size := ViewportSize(width=width, height=800)):
            self.page.set_viewport_size(size)
        self.look(name, axe=axe)

    def picture(self, name: str) -> None:
        if not PICTURES:
            return
        readable = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "id", name).strip("/") or "home"
        file = re.sub(r"[^A-Za-z0-9]+", "-", readable)
        folder = Path(PICTURES) / f"{self.width}-{'dark' if self.is_dark else 'light'}"
        folder.mkdir(parents=True, exist_ok=True)
        self.pictures += 1
        self.page.screenshot(
            # The caret is hidden by an inline style, which the policy of our pages refuses.
            path=folder / f"{self.pictures:02}-{file}.png",
            full_page=True,
            caret="initial",
        )

    def _note(self, text: str) -> None:
        self.faults.append(text)

    def _console(self, message: ConsoleMessage) -> None:
        refused = self.expected >= 400 and f"status of {self.expected}" in message.text
        if message.type in {"error", "warning"} and not refused:
            self._note(f"console: {message.text}")

    def _failed(self, request: Request) -> None:
        # A poll that was under way when the page was left is no fault.
        if request.failure != "net::ERR_ABORTED":
            self._note(f"request failed: {request.url} {request.failure}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.base, "data:", "blob:")):
            self._note(f"external request: {request.url}")

    def _response(self, response: Response) -> None:
        if response.status >= 400 and response.status != self.expected:
            self._note(f"{response.status}: {response.url}")
