"""The core flows by keyboard alone, with JavaScript and without."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from accounts.models import ApiKey, User
from evolution.models import EvolutionJob, Outcome
from tests.factories import make_outcome, make_playbook
from tests.harness.browser_keyboard import check, press, type_into


@pytest.fixture(params=[True, False], ids=["scripts", "no-scripts"])
def browser_context_args(
    browser_context_args: dict[str, object], request: pytest.FixtureRequest
) -> dict[str, object]:
    return browser_context_args | {"java_script_enabled": request.param}


@pytest.fixture
def site(
    page: Page, live_server: LiveServer, alice: User, log_in: Callable[[User], None]
) -> Iterator[str]:
    log_in(alice)
    yield live_server.url


def test_an_outcome_is_reported(page: Page, site: str, alice: User) -> None:
    playbook = make_playbook(alice)
    page.goto(f"{site}{playbook.get_absolute_url()}/outcomes/new")
    type_into(page, page.get_by_label("Task"), "Rename a module")
    check(page, page.get_by_label("Success"))
    type_into(page, page.get_by_label("Notes"), "lesson: Search in strings too.")
    press(page, page.get_by_role("button", name="Save outcome"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Rename a module")
    assert Outcome.objects.get().status == "success"


def test_an_evolution_is_triggered_cancelled_and_tried_again(
    page: Page, site: str, alice: User
) -> None:
    playbook = make_playbook(alice)
    make_outcome(playbook, alice)
    page.goto(f"{site}{playbook.get_absolute_url()}/evolutions")
    press(page, page.get_by_role("button", name="Evolve now"))
    expect(page.get_by_text("queued", exact=True)).to_be_visible()
    press(page, page.locator("#cancel"))
    expect(page.get_by_text("cancelled", exact=True)).to_be_visible()
    press(page, page.locator("#retry"))
    expect(page.get_by_text("queued", exact=True)).to_be_visible()
    assert EvolutionJob.objects.get().status == "queued"


def test_a_key_is_made_shown_once_and_revoked(page: Page, site: str, alice: User) -> None:
    page.goto(f"{site}/keys")
    type_into(page, page.get_by_label("Name"), "laptop")
    press(page, page.get_by_role("button", name="Create key"))
    secret = page.locator("#secret").inner_text()
    assert re.fullmatch(r"ace_live_\w{12}_\w{49}", secret)
    press(page, page.get_by_role("link", name="Done"))
    expect(page.get_by_role("heading", level=1)).to_have_text("API keys")
    assert secret not in page.content()
    press(page, page.get_by_role("link", name="Revoke laptop"))
    press(page, page.get_by_role("button", name="Revoke"))
    expect(page.get_by_text("is revoked").first).to_be_attached()
    assert ApiKey.objects.get().state == "revoked"


def test_the_first_steps_are_put_away(page: Page, site: str, alice: User) -> None:
    page.goto(f"{site}/")
    expect(page.get_by_role("heading", level=1)).to_have_text("First steps")
    press(page, page.locator("#dismiss"))
    expect(page).to_have_url(f"{site}/playbooks")
    expect(page.get_by_role("link", name="Start", exact=True)).to_have_count(0)
