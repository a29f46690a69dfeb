"""From a bullet to the session that taught it and back, by links alone."""

from collections.abc import Callable

from playwright.sync_api import expect

from accounts.models import User
from tests.evolution.session_data import LESSON, close_taught_session
from tests.factories import make_playbook
from tests.harness.browser_page import BrowserPage


def test_a_bullet_leads_to_its_session_and_back(
    watch: BrowserPage, alice: User, log_in: Callable[[User], None]
) -> None:
    page, playbook = watch.page, make_playbook(alice)
    session = close_taught_session(playbook, alice)
    log_in(alice)
    watch.go(f"{playbook.get_absolute_url()}/bullets/str-00001")
    expect(page.get_by_role("heading", name="Source sessions")).to_be_visible()
    watch.look_each("bullet-with-sessions")
    page.get_by_role("link", name="message 3").click()
    expect(page).to_have_url(f"{watch.base}{session.get_absolute_url()}?page=1#m2")
    expect(page.get_by_role("article", name="Assistant, message 3")).to_be_in_viewport()
    expect(page.get_by_role("article", name="Reflector")).to_contain_text("time zone")
    expect(page.get_by_role("article", name="Curator")).to_contain_text(LESSON)
    watch.look_each("session-with-chain")
    results = page.get_by_role("region", name="Results")
    results.get_by_role("link", name="version 2").click()
    expect(page.get_by_role("heading", name="version 2")).to_be_visible()
