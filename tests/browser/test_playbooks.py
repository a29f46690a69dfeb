"""A person and one playbook in a real browser: in place, with undo, by keyboard alone."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from core.security.scopes import Principal
from playbooks.document.operations import Operation
from playbooks.models import Playbook, ReviewItem
from playbooks.services.editing import edit_playbook
from tests.factories import ACE_TEXT, make_playbook, make_review_item
from tests.harness.browser_page import BrowserPage
from tests.harness.clients import logged_in_client

LogIn = Callable[[User], None]
FIRST = "Read the failing test before the code."


@pytest.fixture
def playbook(alice: User, log_in: LogIn) -> Playbook:
    log_in(alice)
    return make_playbook(alice)


def change(playbook: Playbook, by: User, text: str) -> None:
    operation = Operation("UPDATE", id="str-00001", content=text)
    edit_playbook(playbook=playbook, by=Principal.of(by), operations=[operation])


def open_editor(page: Page, bullet: str) -> None:
    page.get_by_role("link", name=f"Edit {bullet}").click()
    expect(page.get_by_label(f"Text of {bullet}")).to_be_focused()


def test_a_bullet_is_changed_in_place_and_the_toast_takes_it_back(
    watch: BrowserPage, playbook: Playbook
) -> None:
    page = watch.page
    watch.open(playbook.get_absolute_url())
    page.evaluate("() => { window.stayed = true; }")
    open_editor(page, "str-00001")
    watch.look_each("editor-open")
    page.get_by_label("Text of str-00001").fill("Say what you expect.")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#str-00001")).to_contain_text("Say what you expect.")
    expect(page.get_by_role("link", name="Edit str-00001")).to_be_focused()
    expect(page.locator(".toast")).to_contain_text("str-00001 is changed.")
    assert page.evaluate("() => window.stayed")
    undo = page.locator(".toast").get_by_role("button", name="Undo")
    undo.focus()  # a toast stays while somebody is on it, however long they look
    watch.look_each("toast")
    undo.click()
    expect(page.locator("#str-00001")).to_contain_text(FIRST)
    expect(page.locator(".toast")).to_contain_text("Version 2 undone")


def test_add_move_pin_retire_and_restore_each_make_a_version_in_place(
    watch: BrowserPage, playbook: Playbook
) -> None:
    page = watch.page
    watch.open(playbook.get_absolute_url(), axe=False)
    page.get_by_text("Add a bullet").first.click()
    page.get_by_label("New bullet").first.fill("Leave no dead code behind.")
    page.get_by_role("button", name="Add bullet").first.click()
    expect(page.locator("#str-00004")).to_contain_text("Leave no dead code behind.")
    open_editor(page, "str-00004")
    page.get_by_label("Section", exact=True).select_option(label="OTHERS")
    page.get_by_role("button", name="Save").click()
    others = page.get_by_role("region", name="OTHERS")
    expect(others.locator("#str-00004")).to_be_visible()
    open_editor(page, "str-00004")
    page.get_by_role("button", name="Pin str-00004").click()
    expect(page.locator("#str-00004 .badge")).to_have_text("pinned")
    open_editor(page, "str-00004")
    expect(page.get_by_role("button", name="Retire")).to_have_count(0)
    page.get_by_role("button", name="Unpin str-00004").click()
    expect(page.locator("#str-00004 .badge")).to_have_count(0)
    open_editor(page, "str-00004")
    page.get_by_role("button", name="Retire str-00004").click()
    expect(page.locator("#str-00004")).to_have_count(0)
    page.get_by_role("link", name="Retired 1").click()
    page.get_by_role("button", name="Restore str-00004").click()
    expect(page.get_by_role("heading", name="No retired bullets")).to_be_visible()
    assert playbook.versions.count() == 7


def test_a_rejected_edit_keeps_the_text_and_can_be_sent_again(
    watch: BrowserPage, playbook: Playbook, alice: User
) -> None:
    page = watch.page
    watch.open(playbook.get_absolute_url(), axe=False)
    open_editor(page, "str-00001")
    change(playbook, alice, "Theirs.")
    watch.expected = 409
    page.get_by_label("Text of str-00001").fill("Mine.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Current text of str-00001: “Theirs.”")
    expect(page.get_by_label("Text of str-00001")).to_have_value("Mine.")
    watch.look_each("conflict")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#str-00001 .content")).to_have_text("Mine.")
    watch.expected = 422
    page.get_by_text("Add a bullet").first.click()
    page.get_by_label("New bullet").first.fill("Mine.")
    page.get_by_role("button", name="Add bullet").first.click()
    expect(page.get_by_role("alert")).to_contain_text("This advice already exists.")
    expect(page.get_by_label("Your text")).to_have_value("Mine.")


def test_search_and_sort_stand_in_the_address(watch: BrowserPage, playbook: Playbook) -> None:
    page = watch.page
    watch.open(playbook.get_absolute_url(), axe=False)
    page.keyboard.press("/")
    page.keyboard.type("smallest")
    expect(page.locator(".bullet")).to_have_count(1)
    expect(page).to_have_url(re.compile("q=smallest"))
    expect(page.get_by_label("Search the bullets")).to_be_focused()
    expect(page.get_by_role("link", name="Pinned")).to_have_attribute("href", re.compile("q=small"))
    page.reload()
    expect(page.locator(".bullet")).to_have_count(1)
    page.get_by_label("Search the bullets").fill("")
    page.get_by_label("Sort").select_option("harmful")
    expect(page.locator(".bullet")).to_have_count(3)
    expect(page).to_have_url(re.compile("sort=harmful"))
    page.goto(f"{watch.base}/playbooks?q=fixing")
    page.get_by_label("Sort").select_option("name")
    expect(page).to_have_url(re.compile("q=fixing&sort=name"))
    page.goto(f"{watch.base}/playbooks?q=nothing+here")
    expect(page.get_by_role("link", name="Show all active playbooks")).to_be_visible()


def test_a_bullet_page_shows_its_history_and_reverts_a_text(
    watch: BrowserPage, playbook: Playbook, alice: User
) -> None:
    change(playbook, alice, "Read the failing test, then the code.")
    page = watch.page
    watch.open(playbook.get_absolute_url(), axe=False)
    page.get_by_role("link", name="str-00001", exact=True).click()
    expect(page.locator("ins").first).to_have_text("test, then")
    page.get_by_role("button", name="Revert to this text of version 1").click()
    expect(page.locator(".advice")).to_have_text(FIRST)
    expect(page.locator(".timeline > li")).to_have_count(3)
    watch.look_each("bullet")


def test_two_versions_are_compared_rolled_back_and_undone(
    watch: BrowserPage, playbook: Playbook, alice: User
) -> None:
    change(playbook, alice, "First change.")
    change(playbook, alice, "Second change.")
    page = watch.page
    watch.open(f"{playbook.get_absolute_url()}/versions")
    page.get_by_role("link", name="Compare version 3").click()
    page.get_by_label("Compare version 3 with").fill("1")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("From version 1 to version 3")
    page.get_by_role("link", name="Side by side").click()
    expect(page.locator(".diff.side del")).to_have_text("Read the failing test before the code.")
    watch.look_each("side-by-side")
    page.get_by_role("link", name="Versions").click()
    page.get_by_role("link", name="Roll back to version 1").click()
    expect(page.get_by_text("What would change")).to_be_visible()
    page.get_by_role("button", name="Roll back").click()
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator("#str-00001 .content")).to_have_text("Second change.")


def test_a_file_with_a_mistake_keeps_its_text_to_be_corrected(
    watch: BrowserPage, playbook: Playbook, tmp_path: Path
) -> None:
    file = tmp_path / "broken.md"
    file.write_text(f"{ACE_TEXT}\nno bullet at all\n")
    page = watch.page
    watch.open("/playbooks/import")
    page.get_by_label("Name").fill("Brought along")
    page.get_by_label("File", exact=True).set_input_files(file)
    watch.expected = 422
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_text("Line 8: This is neither a heading")).to_be_visible()
    watch.look_each("import-refused")
    text = page.get_by_label("Or paste the text")
    text.fill(text.input_value().replace("no bullet at all", ""))
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Brought along")
    page.get_by_text("Export", exact=True).click()
    with page.expect_download() as download:
        page.locator("a[href$='format=json']").click()
    assert download.value.suggested_filename == "brought-along.json"


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


FOCUSED = """() => {
    const e = document.activeElement;
    if (e === document.body) return "";
    return e.ariaLabel || (e.labels?.[0] ?? e).textContent;
}"""


def reach(page: Page, name: str) -> None:
    """Tab until the element with this accessible name has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if name in page.evaluate(FOCUSED):
            return
    raise AssertionError(f"no way by keyboard to {name}")


def test_the_core_flows_need_no_mouse(watch: BrowserPage, playbook: Playbook) -> None:
    page = watch.page
    watch.open("/playbooks", axe=False)
    reach(page, "New playbook")
    press(page, "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("New playbook")
    reach(page, "Name")
    page.keyboard.type("By keyboard")
    press(page, "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("By keyboard")
    page.wait_for_load_state()  # with the script that adds in place
    reach(page, "STRATEGIES & INSIGHTS")
    press(page, "Enter")
    reach(page, "New bullet")
    page.keyboard.type("Use the keys.")
    press(page, "Tab", "Enter")
    expect(page.get_by_role("link", name="Edit str-00001")).to_be_focused()
    press(page, "Enter")
    expect(page.get_by_label("Text of str-00001")).to_be_focused()
    press(page, "Escape")
    expect(page.get_by_role("link", name="Edit str-00001")).to_be_focused()
    press(page, "Enter")
    expect(page.get_by_label("Text of str-00001")).to_be_focused()
    reach(page, "Retire")
    press(page, "Enter")
    expect(page.locator(".toast").last).to_contain_text("str-00001 is retired.")
    expect(page.get_by_role("button", name="Undo version 3")).to_be_visible()
    reach(page, "Undo version 3")
    press(page, "Enter")
    expect(page.locator("#str-00001")).to_be_visible()


def test_everything_works_without_javascript(
    browser: Browser, live_server: LiveServer, alice: User
) -> None:
    playbook = make_playbook(alice)
    context = browser.new_context(java_script_enabled=False, base_url=live_server.url)
    cookie = logged_in_client(alice).cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
    page = context.new_page()
    page.goto(playbook.get_absolute_url())
    expect(page.locator("kbd.js-only").first).to_be_hidden()
    page.get_by_role("link", name="Edit str-00001").click()
    page.get_by_role("button", name="Retire str-00001").click()
    expect(page.get_by_text("str-00001 is retired.")).to_be_visible()
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator("#str-00001")).to_contain_text(FIRST)
    expect(page.locator("time").first).to_contain_text("UTC")
    page.get_by_label("Search the bullets").fill("silence")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".bullet")).to_have_count(1)
    page.get_by_role("link", name="Go to").click()
    page.get_by_role("main").get_by_role("link", name="Import a playbook").click()
    page.get_by_label("Name").fill("Plain")
    page.get_by_label("Or paste the text").fill(ACE_TEXT)
    page.get_by_role("button", name="Import").click()
    page.get_by_text("Export", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Agent Skill").click()
    assert download.value.suggested_filename == "plain.zip"
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("heading", level=1)).to_have_text("Plain")
    context.close()


def test_the_inbox_is_decided_by_keys(watch: BrowserPage, playbook: Playbook) -> None:
    items = [make_review_item(playbook, f"Read https://docs.example.org/{n}.") for n in (1, 2)]
    page = watch.page
    watch.open("/inbox")
    watch.look_each("inbox")
    for key, left in (("d", 1), ("a", 0)):
        page.wait_for_load_state()  # then the page listens to keys
        page.keyboard.press("j")
        page.keyboard.press(key)
        expect(page.locator("[data-item]")).to_have_count(left)
    expect(page.get_by_role("heading", name="Nothing needs a decision")).to_be_visible()
    states = dict(ReviewItem.objects.values_list("pk", "state"))
    assert sorted(states[item.pk] for item in items) == ["approved", "declined"]
