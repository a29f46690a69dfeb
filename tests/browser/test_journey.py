"""The core journey with the keyboard and the mouse of a person, and the same without JavaScript."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob
from evolution.worker.tasks import run_evolution
from playbooks.starters.loader import load_starters
from tests.factories import PASSWORD, make_key, make_outcome, make_playbook
from tests.harness.browser_page import BrowserPage


def register(page: Page, base: str) -> None:
    page.goto(f"{base}/")
    page.get_by_role("main").get_by_role("link", name="Register").click()
    page.get_by_label("Email").fill("dora@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Register").click()
    # The same labels are on both pages.
    expect(page).to_have_url(f"{base}/login")
    page.get_by_label("Email").fill("dora@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="First steps")).to_be_visible()


def clone_starter(page: Page) -> None:
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Playbooks").click()
    page.get_by_role("link", name="Browse starters").click()
    page.get_by_role("button", name="Clone Coding agent").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Coding agent")


def change_bullets(page: Page) -> None:
    page.get_by_role("link", name="Edit str-00001").click()
    page.get_by_label("Text of str-00001").fill("Say what you will do, then do it.")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#str-00001")).to_contain_text("Say what you will do, then do it.")
    page.get_by_text("Add a bullet").first.click()
    page.get_by_label("New bullet").first.fill("Leave no dead code behind.")
    page.get_by_role("button", name="Add bullet").first.click()
    expect(page.get_by_text("Leave no dead code behind.")).to_be_visible()


def roll_back(page: Page) -> None:
    page.get_by_role("link", name="Versions").click()
    page.get_by_role("link", name="Compare version 3").click()
    expect(page.locator("ins").first).to_have_text("Leave no dead code behind.")
    page.go_back()
    page.get_by_role("link", name="Roll back to version 1").click()
    page.get_by_role("button", name="Roll back").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Version 4")


def record_outcome(page: Page) -> None:
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link").nth(1).click()
    page.get_by_role("link", name="Record outcome").click()
    page.get_by_label("Task").fill("Rename a module")
    page.get_by_label("Success").check()
    page.get_by_label("Notes").fill("lesson: Search for the old name in strings too.")
    page.get_by_label("Bullets used").fill("str-00001, str-00002")
    page.get_by_role("button", name="Save outcome").click()
    expect(page.get_by_text("1 pending for the next evolution")).to_be_visible()


def evolve(page: Page) -> None:
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link").nth(1).click()
    page.get_by_role("button", name="Evolve now").click()
    expect(page.get_by_text("queued", exact=True)).to_be_visible()
    assert run_evolution(str(EvolutionJob.objects.get().pk)) == "completed"


def create_key(page: Page) -> str:
    page.get_by_role("link", name="API keys").click()
    page.get_by_label("Name").fill("laptop")
    page.get_by_label("Evolve:").check()
    page.get_by_role("button", name="Create key").click()
    secret = page.locator("#secret").inner_text()
    assert re.fullmatch(r"ace_live_\w{12}_\w{49}", secret)
    return secret


def test_from_registering_to_a_new_version(watch: BrowserPage, transactional_db: None) -> None:
    page = watch.page
    load_starters()
    register(page, watch.base)
    clone_starter(page)
    change_bullets(page)
    roll_back(page)
    record_outcome(page)
    evolve(page)
    # Nobody reloads: the page asks by itself until the end, and then no more.
    page.get_by_role("link", name="version 5").click()
    expect(page.get_by_text("Search for the old name in strings too.").first).to_be_visible()
    secret = create_key(page)
    watch.look("key-made")
    page.get_by_role("link", name="Done").click()
    expect(page.locator("#secret")).to_have_count(0)
    assert secret not in page.content()


def test_the_same_without_javascript(
    browser: Browser, live_server: LiveServer, transactional_db: None
) -> None:
    load_starters()
    page = browser.new_context(java_script_enabled=False).new_page()
    register(page, live_server.url)
    clone_starter(page)
    change_bullets(page)
    roll_back(page)
    record_outcome(page)
    evolve(page)
    page.reload()
    page.get_by_role("link", name="version 5").click()
    create_key(page)
    page.context.close()


def test_a_newcomer_sees_the_first_diff_after_six_clicks(
    watch: BrowserPage, alice: User, transactional_db: None
) -> None:
    """As after `make run`: a login and a key that were printed, and no agent yet."""
    make_key(alice)
    load_starters()
    page, clicks = watch.page, []
    page.expose_function("clicked", lambda kind: clicks.append(kind))
    page.add_init_script("addEventListener('click', e => e.isTrusted && clicked(e.type), true)")
    watch.go("/login")
    page.get_by_label("Email").fill(alice.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Clone Coding agent").click()
    page.get_by_role("link", name="Record an outcome yourself").click()
    page.get_by_label("Task").fill("Rename a module")
    page.get_by_label("Failure").check()
    page.get_by_label("Notes").fill("Lesson: Search for the old name in strings too.")
    page.get_by_role("button", name="Save outcome").click()
    page.get_by_role("button", name="Evolve now").click()
    expect(page.get_by_text("queued", exact=True)).to_be_visible()
    run_evolution(str(EvolutionJob.objects.get().pk))
    changed = page.get_by_role("region", name="What changed")
    expect(changed).to_contain_text("Search for the old name in strings too.")
    assert len(clicks) <= 6


def test_a_finished_job_is_not_asked_about_again(
    watch: BrowserPage, alice: User, log_in: Callable[[User], None]
) -> None:
    playbook = make_playbook(alice)
    make_outcome(playbook, alice, bullet_ids=["str-00001"])
    job = trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
    log_in(alice)
    polls: list[str] = []
    watch.open(job.get_absolute_url())
    watch.page.on("request", lambda request: polls.append(request.url))
    with watch.page.expect_response(re.compile("seen=")):
        pass
    run_evolution(str(job.pk))
    expect(watch.page.get_by_text("completed", exact=True)).to_be_visible()
    assert watch.page.locator("#live").get_attribute("hx-get") is None
    assert polls


def test_forms_that_are_refused(
    watch: BrowserPage, alice: User, log_in: Callable[[User], None]
) -> None:
    log_in(alice)
    for address, button in (("/playbooks/import", "Import"), ("/keys", "Create key")):
        watch.open(address)
        watch.page.evaluate("() => document.querySelectorAll('form').forEach(f => f.noValidate=1)")
        watch.expected = 422
        watch.page.get_by_role("button", name=button, exact=True).click()
        expect(watch.page.get_by_role("alert")).to_be_visible()
        watch.look(f"refused-{address}")


def test_the_keyboard_reaches_the_content_first(watch: BrowserPage, transactional_db: None) -> None:
    watch.open("/")
    watch.page.keyboard.press("Tab")
    expect(watch.page.get_by_role("link", name="Skip to content")).to_be_focused()
    watch.page.keyboard.press("Enter")
    expect(watch.page.locator("main")).to_be_focused()


@pytest.fixture
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    return browser_context_args | {"viewport": {"width": 1280, "height": 800}}
