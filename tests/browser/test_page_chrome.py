"""What every page brings along: palette, shortcuts, theme, times and menu."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from playbooks.models import Playbook
from tests.factories import make_playbook
from tests.harness.browser_page import BrowserPage

LogIn = Callable[[User], None]


@pytest.fixture
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    return browser_context_args | {"timezone_id": "Asia/Kolkata", "color_scheme": "light"}


@pytest.fixture
def playbook(alice: User, log_in: LogIn) -> Playbook:
    log_in(alice)
    return make_playbook(alice)


def dialog(page: Page, name: str) -> Any:
    return page.get_by_role("dialog", name=name)


def test_the_palette_finds_and_goes_and_gives_the_focus_back(
    watch: BrowserPage, playbook: Playbook
) -> None:
    page = watch.page
    watch.open("/usage", axe=False)
    link = page.get_by_role("link", name="Go to…")
    link.focus()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option", name="Fixing tests")).to_have_attribute(
        "aria-selected", "true"
    )
    watch.look_each("palette")
    page.keyboard.type("zzz nowhere")
    expect(page.get_by_text("No results for")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog(page, "Go to")).to_be_hidden()
    expect(link).to_be_focused()
    page.keyboard.press("Control+k")
    page.keyboard.type("key")
    expect(page.get_by_role("option").first).to_have_text("API keys")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{watch.base}/keys")


def test_enter_before_the_answer_goes_to_what_was_typed(
    watch: BrowserPage, playbook: Playbook
) -> None:
    page = watch.page
    watch.open("/usage", axe=False)
    page.keyboard.press("Control+k")
    expect(dialog(page, "Go to").get_by_role("option").first).to_be_visible()
    page.keyboard.type("key\n")
    expect(page).to_have_url(f"{watch.base}/keys")


def test_an_answer_that_comes_late_leaves_chosen_what_the_arrows_chose(
    watch: BrowserPage, playbook: Playbook
) -> None:
    page = watch.page
    watch.open("/playbooks", axe=False)
    page.keyboard.press("Control+k")
    page.keyboard.type("theme")
    chosen = page.locator("[aria-selected=true]")
    expect(dialog(page, "Go to").get_by_role("option")).to_have_count(3)
    expect(chosen).to_have_text("Use the light theme")
    page.keyboard.press("ArrowDown")
    expect(chosen).to_have_text("Use the dark theme")
    page.locator("#palette-found").evaluate("found => found.dataset.old = ''")
    page.locator("#palette input").dispatch_event("palette-open")  # the same words, once more
    expect(page.locator("[data-old], .htmx-settling")).to_have_count(0)
    expect(chosen).to_have_text("Use the dark theme")


def test_arrows_choose_and_a_theme_is_an_action(watch: BrowserPage, playbook: Playbook) -> None:
    page = watch.page
    watch.open("/playbooks", axe=False)
    page.get_by_role("link", name="Go to…").click()
    page.keyboard.type("theme")
    expect(dialog(page, "Go to").get_by_role("option")).to_have_count(3)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(page.locator("[aria-selected=true]")).to_have_text("Use the dark theme")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    watch.look("chosen-dark")
    page.get_by_role("button", name="System").click()
    expect(page.locator("html[data-theme]")).to_have_count(0)


def test_shortcuts_are_listed_and_single_keys_can_be_switched_off(
    watch: BrowserPage, playbook: Playbook
) -> None:
    page = watch.page
    watch.open("/playbooks", axe=False)
    new = page.get_by_role("link", name="New playbook")
    new.focus()
    page.keyboard.press("?")
    expect(dialog(page, "Shortcuts")).to_be_visible()
    watch.look_each("shortcuts")
    page.get_by_label("single-key shortcuts").uncheck()
    page.get_by_role("button", name="Close").click()
    expect(new).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.press("?")
    expect(dialog(page, "Shortcuts")).to_be_hidden()
    expect(new).to_be_focused()


def test_a_time_shows_the_exact_moment_in_the_readers_zone(
    watch: BrowserPage, playbook: Playbook
) -> None:
    Playbook.objects.filter(pk=playbook.pk).update(updated_at="2026-01-02T20:00:00Z")
    page = watch.page
    watch.open("/playbooks", axe=False)
    time = page.locator("time").last
    expect(time).to_have_text(re.compile(r"months? ago$|years? ago$"))
    tip = page.get_by_role("tooltip")
    for show in (time.hover, time.focus):
        show()
        expect(tip).to_have_text(re.compile(r"^3 Jan 2026, 01:30 \("))
        page.keyboard.press("Escape")
        expect(tip).to_be_hidden()
        page.mouse.move(0, 0)
    expect(page.get_by_text("Times shown in Asia/")).to_be_visible()


def test_the_menu_opens_by_keyboard_and_closes_with_the_focus_back(
    watch: BrowserPage, playbook: Playbook
) -> None:
    page = watch.page
    watch.open("/playbooks", axe=False)
    button = page.locator("summary.avatar")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    watch.look_each("menu")
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Log out")).to_be_hidden()
    expect(button).to_be_focused()


def many(count: int) -> str:
    lines = (
        f"[str-{n:05d}] helpful={n} harmful=0 :: Case {n}: read what the test of module "
        f"{n * 31 % 97} expects, and say it before you change a line."
        for n in range(1, count + 1)
    )
    return "## STRATEGIES & INSIGHTS\n" + "\n".join(lines)


SHIFTS = """() => new Promise(done => new PerformanceObserver(
    list => done(list.getEntries().filter(e => !e.hadRecentInput).reduce((s, e) => s + e.value, 0))
).observe({type: "layout-shift", buffered: true}) || setTimeout(() => done(0), 500))"""


def test_a_page_of_five_hundred_bullets_stands_still_while_it_loads(
    watch: BrowserPage, alice: User, log_in: LogIn
) -> None:
    log_in(alice)
    playbook = make_playbook(alice, text=many(500))
    page = watch.page
    watch.open(playbook.get_absolute_url(), axe=False)
    expect(page.get_by_role("link", name="All 500 bullets")).to_be_visible()
    assert page.evaluate(SHIFTS) < 0.1
