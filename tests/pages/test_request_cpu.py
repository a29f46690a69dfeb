"""No form or search of a page costs more than 250 ms of CPU; `make fuzz` sends every family."""

from copy import deepcopy
from functools import partial
from urllib.parse import urlencode

import pytest
from django.db import transaction
from django.test import Client
from pytest_django import Settings

from accounts.models import User
from tests.harness.clients import logged_in_client
from tests.harness.page_forms import Form, forms_of
from tests.harness.page_urls import common_pages, own_pages, staff_pages
from tests.harness.sample_account import World
from tests.harness.slow_requests import FAMILIES, Stopwatch, cases

FORM = "application/x-www-form-urlencoded"


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
