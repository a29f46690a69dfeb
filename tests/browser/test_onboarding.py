"""The checklist beside an agent that works; and what only scripts can do on our pages."""

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import ApiKey, User
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob
from evolution.worker.tasks import run_evolution
from mcp_bridge.models import ClientActivity
from playbooks.starters.loader import load_starters
from tests.factories import make_key, make_outcome, make_playbook
from tests.harness.browser_page import BrowserPage
from tests.harness.sample_account import build_world


@pytest.fixture
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    clipboard = ["clipboard-read", "clipboard-write"]
    return browser_context_args | {"permissions": clipboard}


def ticked(page: Page, number: int) -> None:
    expect(page.locator(".checklist .done")).to_have_count(number)


def test_the_list_ticks_itself_off_to_the_end(
    watch: BrowserPage, alice: User, log_in: Callable[[User], None]
) -> None:
    page = watch.page
    load_starters()
    log_in(alice)
    watch.open("/start")
    page.get_by_role("button", name="Clone Coding agent").click()
    ticked(page, 1)
    watch.open("/start")
    page.get_by_role("button", name="Create key").click()
    secret = page.locator("#secret").inner_text()
    page.wait_for_load_state()  # with the script that copies
    page.get_by_role("button", name="Copy key").press("Enter")
    expect(page.locator("#announcer")).to_have_text("Copied to clipboard")
    expect(page.locator("[data-copy=secret]")).to_be_focused()
    assert page.evaluate("() => navigator.clipboard.readText()") == secret
    page.get_by_role("link", name="Back to first steps").click()
    ticked(page, 2)
    # From here on nobody touches the page.
    now = timezone.now()
    ClientActivity.objects.create(user=alice, credential="key", accepted_at=now, seen_at=now)
    ticked(page, 3)
    make_outcome(alice.playbooks.get(), alice)
    ticked(page, 4)
    job = trigger_evolution(playbook=alice.playbooks.get(), by=Principal.of(alice)).job
    assert run_evolution(str(job.pk)) == "completed"
    expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert page.locator("#live").get_attribute("hx-get") is None
    watch.look("all-done")


def test_the_live_page_counts_reflections_and_can_cancel(
    watch: BrowserPage, alice: User, log_in: Callable[[User], None]
) -> None:
    playbook = make_playbook(alice)
    make_outcome(playbook, alice)
    job = trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
    log_in(alice)
    watch.open(job.get_absolute_url())
    EvolutionJob.objects.update(status="running", phase="reflect")
    expect(watch.page.locator("[aria-current=step]")).to_have_text("Reflect")
    watch.look("running")
    watch.page.locator("#cancel").click()
    expect(watch.page.get_by_text("cancelled", exact=True)).to_be_visible()


def test_usage_is_narrowed_and_downloaded(
    watch: BrowserPage, alice: User, log_in: Callable[[User], None], tmp_path: Path
) -> None:
    build_world(alice)
    log_in(alice)
    watch.open("/usage")
    watch.page.get_by_role("link", name="By month").click()
    expect(watch.page).to_have_url(re.compile("period=month"))
    watch.page.get_by_role("link", name="gpt-4o", exact=True).click()
    expect(watch.page.get_by_role("link", name="Model: gpt-4o")).to_be_visible()
    with watch.page.expect_download() as download:
        watch.page.get_by_role("link", name="Download CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))
    assert {row["model"] for row in rows} == {"gpt-4o"}
    watch.page.get_by_role("link", name="Model: gpt-4o").click()
    expect(watch.page.get_by_role("link", name="own-model")).to_be_visible()


def test_a_key_is_rotated(watch: BrowserPage, alice: User, log_in: Callable[[User], None]) -> None:
    page = watch.page
    make_key(alice, name="laptop")
    log_in(alice)
    watch.open("/keys", axe=False)
    page.get_by_role("link", name="Rotate laptop").click()
    page.get_by_role("button", name="Rotate").click()
    expect(page.locator("#secret")).to_be_visible()
    assert ApiKey.objects.count() == 2


def test_outcomes_are_filtered_and_a_trace_is_unfolded(
    watch: BrowserPage, alice: User, log_in: Callable[[User], None]
) -> None:
    page, playbook = watch.page, make_playbook(alice)
    make_outcome(playbook, alice, outcome="failure", reasoning_trace="Step 1 <b>bold</b>")
    make_outcome(playbook, alice, task_description="Another")
    log_in(alice)
    watch.open(f"{playbook.get_absolute_url()}/outcomes", axe=False)
    page.get_by_role("link", name="Failure", exact=True).click()
    expect(page.get_by_role("link", name="Another")).to_have_count(0)
    page.get_by_role("link", name="Make the build green").click()
    expect(page.get_by_text("Step 1 <b>bold</b>")).to_be_hidden()
    page.get_by_text("Show the trace").click()
    expect(page.get_by_text("Step 1 <b>bold</b>")).to_be_visible()
    watch.look("trace-open")
