"""A person who has a keyboard and no mouse."""

from playwright.sync_api import Locator, Page

FAR = 150


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until `wanted` has the focus; fails when it cannot be reached."""
    for _ in range(FAR):
        if wanted.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{wanted} is not reached by Tab")


def press(page: Page, wanted: Locator) -> None:
    """Go there and press Enter."""
    tab_to(page, wanted)
    page.keyboard.press("Enter")


def type_into(page: Page, wanted: Locator, text: str) -> None:
    tab_to(page, wanted)
    page.keyboard.press("Control+A")
    page.keyboard.type(text)


def check(page: Page, wanted: Locator) -> None:
    tab_to(page, wanted)
    page.keyboard.press("Space")
