"""States that no address leads to: a key shown, refused forms, errors, filters without a hit."""

import re
from collections.abc import Callable

from playwright.sync_api import expect

from accounts.models import User
from evolution.models import EvolutionJob
from tests.factories import make_key, make_playbook
from tests.harness.browser_page import BrowserPage


def test_keys_shown_and_refused(
    watch: BrowserPage, alice: User, log_in: Callable[[User], None]
) -> None:
    page = watch.page
    make_key(alice, name="laptop")
    log_in(alice)
    watch.open("/keys", axe=False)
    page.evaluate("() => document.querySelectorAll('form').forEach(form => form.noValidate = 1)")
    watch.expected = 422
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_role("alert")).to_be_visible()
    watch.look_each("keys-refused")
    page.get_by_label("Name").fill("ci")
    watch.expected = 200
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_text("ace_live_").first).to_be_visible()
    watch.look_each("key-shown")
    watch.expected = 409
    page.reload()
    watch.look_each("key-shown-already")


def test_outcomes_refused_and_filtered_to_nothing(
    watch: BrowserPage, alice: User, log_in: Callable[[User], None]
) -> None:
    page, playbook = watch.page, make_playbook(alice)
    log_in(alice)
    watch.open(f"{playbook.get_absolute_url()}/outcomes/new", axe=False)
    page.get_by_label("Task").fill("Rename a module")
    page.get_by_label("Success").check()
    page.get_by_label("Bullets used").fill("str-99999")
    watch.expected = 422
    page.get_by_role("button", name="Save outcome").click()
    expect(page.get_by_text("has no str-99999").first).to_be_visible()
    watch.look_each("outcome-refused")
    watch.go(f"{playbook.get_absolute_url()}/outcomes?status=failure")
    watch.look_each("outcomes-filtered-to-nothing")


def test_error_pages(watch: BrowserPage, alice: User, log_in: Callable[[User], None]) -> None:
    log_in(alice)
    refused = {"/nothing-here": 404, "/usage?period=year": 400, "/admin/login/": 403}
    for address, status in refused.items():
        watch.go(address, status=status)
        watch.look_each(address)


def test_on_a_phone_the_link_of_this_page_is_in_sight(
    watch: BrowserPage, alice: User, log_in: Callable[[User], None]
) -> None:
    page, playbook = watch.page, make_playbook(alice)
    log_in(alice)
    page.set_viewport_size({"width": 360, "height": 700})
    watch.go(f"{playbook.get_absolute_url()}/settings")
    tabs = page.get_by_role("navigation", name="This playbook")
    expect(tabs.get_by_role("link", name="Settings")).to_be_in_viewport(ratio=0.9)
    expect(tabs).to_have_class(re.compile("more-before"))


def test_a_failing_poll_is_reported_once_until_it_recovers(
    watch: BrowserPage, alice: User, log_in: Callable[[User], None]
) -> None:
    page, playbook = watch.page, make_playbook(alice)
    job = EvolutionJob.objects.create(playbook=playbook, trigger="manual", status="running")
    log_in(alice)
    watch.go(job.get_absolute_url())
    watch.expected = 503
    page.route("**/evolutions/*seen=*", lambda route: route.fulfill(status=503))
    for _ in range(2):
        with page.expect_response(lambda answer: answer.status == 503):
            pass
    expect(page.locator(".toast")).to_have_text(re.compile("out of date"))
    page.unroute("**/evolutions/*seen=*")
    expect(page.locator(".toast")).to_have_count(0)
    watch.expected = 200
    # What htmx tells the console of it is meant here.
    watch.faults = [fault for fault in watch.faults if "Error Code 503" not in fault]
