"""The documents on a phone."""

from tests.harness.browser_page import BrowserPage

# How many blocks show a line of their text on more than one line of the screen.
WRAPPED = """() => [...document.querySelectorAll(".code-block.lines pre")].filter(block => {
    const range = document.createRange();
    range.selectNodeContents(block);
    const shown = new Set([...range.getClientRects()].map(line => Math.round(line.top)));
    return shown.size > block.textContent.split("\\n").length;
}).length"""


def test_a_command_keeps_its_lines_on_a_phone(watch: BrowserPage, transactional_db: None) -> None:
    watch.page.set_viewport_size({"width": 360, "height": 800})
    watch.open("/docs/quickstart")
    assert watch.page.locator(".code-block.lines").count() > 3
    assert watch.page.evaluate(WRAPPED) == 0
