"""No form or search of a page costs more than 250 ms of CPU; `make fuzz` sends every family."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from urllib.parse import urlencode, urljoin

import pytest
from django.db import transaction
from django.test import Client
from pytest_django import Settings

from accounts.models import User
from tests.harness.clients import logged_in_client
from tests.harness.page_urls import common_pages, own_pages, staff_pages
from tests.harness.sample_account import World
from tests.harness.slow_requests import FAMILIES, Stopwatch, cases

NOT_TEXT = {"checkbox", "radio", "submit", "button", "file", "hidden"}
FORM = "application/x-www-form-urlencoded"


@dataclass
class Form:
    """A form of a page: where it goes, its values, and the names of its text fields."""

    method: str
    action: str
    values: dict[str, str]
    texts: list[str]


class Forms(HTMLParser):
    """Reads the forms of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.page, self.found = page, list[Form]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            action = urljoin(self.page, given.get("action", ""))
            self.found.append(Form(given.get("method", "get").lower(), action, {}, []))
        elif tag in {"input", "textarea", "select"} and self.found and given.get("name"):
            form, name = self.found[-1], given["name"]
            form.values[name] = given.get("value", "")
            if tag == "textarea" or (tag == "input" and given.get("type") not in NOT_TEXT):
                form.texts.append(name)


def forms_of(browser: Client, pages: list[str]) -> Iterator[Form]:
    """Each form with a text field, once."""
    seen = set[tuple[str, str, str]]()
    for page in pages:
        reader = Forms(page)
        reader.feed(browser.get(page).content.decode())
        for form in reader.found:
            key = (form.method, form.action.partition("?")[0], ",".join(form.texts))
            if form.texts and key not in seen:
                seen.add(key)
                yield form


def _submit(browser: Client, form: Form, values: dict[str, str]) -> int:
    body, cookies = urlencode(values, errors="replace"), deepcopy(browser.cookies)
    with transaction.atomic():
        if form.method == "get":
            status = browser.get(f"{form.action.partition('?')[0]}?{body[:60_000]}").status_code
        else:
            status = browser.post(form.action, body, content_type=FORM).status_code
        transaction.set_rollback(True)
    browser.cookies = cookies  # a form may have logged out
    return status


@pytest.fixture(autouse=True)
def no_limits(settings: Settings) -> None:
    settings.RATE_LIMITS = dict.fromkeys(settings.RATE_LIMITS, "1000000/s")


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("who", ["alice", pytest.param("staff", marks=pytest.mark.nightly)])
def test_no_form_is_slow(request: pytest.FixtureRequest, world: World, who: str) -> None:
    user = request.getfixturevalue(who)
    pages = [*common_pages(), *own_pages(world)] if who == "alice" else staff_pages(world)
    watch, browser = Stopwatch(), logged_in_client(user)
    for form in list(forms_of(browser, pages)):
        for name, family, size in cases(form.texts):
            values = form.values | {name: FAMILIES[family](size)}
            what = f"{form.method} {form.action} {name}: {size:,} of {family}"
            watch.send(what, partial(_submit, browser, form, values))
    watch.report()


def test_a_page_number_without_end_is_a_page(alice: User, world: World) -> None:
    page = f"{world.playbook.get_absolute_url()}/bullets/str-00001?page=00001{'1' * 5000}"
    assert logged_in_client(alice).get(page).status_code == 200


def test_thousands_of_words_are_searched_for(alice: User, world: World) -> None:
    page = f"{world.playbook.get_absolute_url()}?q={'a+' * 5000}"
    assert logged_in_client(alice).get(page).status_code == 200
