"""An error of a form is shown once: on its field, above the form, or in a message."""

from collections import Counter
from collections.abc import Iterator
from html import unescape
from re import DOTALL, findall, sub
from typing import Any

import pytest
from django.db import transaction
from django.http import HttpResponseBase
from django.test import Client
from pytest_django import Settings

from core.http.forms import ServiceForm
from tests.harness.page_forms import Form, forms_of
from tests.harness.sample_account import World

WRONG, OTHER = "\x07", "7"
PUBLIC = ("/login", "/login/reset", "/register")
OWN = (
    *("/keys", "/playbooks/new", "/playbooks/import", "/usage/budgets/set"),
    *("/settings/email", "/settings/password", "/settings/webhook", "/settings/llm-key"),
    *("/settings/delete", "/settings/confirm", "/settings/second-factor/app"),
)
OF_PLAYBOOK = ("bullets/str-00001/edit", "outcomes/new", "settings", "shares?kind=diff")
# Base forms, those without a text field, and those behind a link of an e-mail or a model.
ELSEWHERE = {
    *("NewPasswordForm", "RateForm", "ResetPasswordForm", "RotateApiKeyForm", "StartForm"),
    "VerifyForm",
}


def errors_twice(page: str) -> list[str]:
    """The errors that are shown more often than fields have them."""
    text = unescape(sub(r"<[^>]+>", "\n", page))
    lists = findall(r'<ul class="errorlist( nonfield)?"[^>]*>(.*?)</ul>', page, DOTALL)
    notes = findall(r'<div class="toast note (?:bad|warn)"><span>(.*?)</span>', page, DOTALL)
    fields = Counter(unescape(item) for other, item in lists if not other)
    others = [unescape(one) for one in (*notes, *(item for other, item in lists if other))]
    texts = (sub(r"</?li>", "", one).strip() for one in (*fields, *others))
    return [one for one in texts if text.count(one) > max(1, fields[f"<li>{one}</li>"])]


def forms_below(kind: type[ServiceForm]) -> Iterator[type[ServiceForm]]:
    for one in kind.__subclasses__():
        yield from (one, *forms_below(one))


def wrong_posts(browser: Client, form: Form) -> Iterator[str]:
    """The page that each wrong text leads to, the other fields being filled."""
    filled = {name: value or OTHER for name, value in form.values.items()}
    for name in form.texts:
        with transaction.atomic():
            sent = {**filled, name: WRONG}
            answer: HttpResponseBase = browser.post(form.action, sent, follow=True)
            yield answer.content.decode()  # type: ignore[attr-defined]  # no file
            transaction.set_rollback(True)


def test_no_form_says_an_error_twice(
    owner: Client, client: Client, world: World, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RATE_LIMITS = dict.fromkeys(settings.RATE_LIMITS, "1000000/s")
    shown, add = set[str](), ServiceForm.add_error

    def note(form: ServiceForm, *error: Any) -> None:
        shown.add(type(form).__name__)
        add(form, *error)

    monkeypatch.setattr(ServiceForm, "add_error", note)
    one = world.playbook.get_absolute_url()
    own = [*OWN, *(f"{one}/{page}" for page in OF_PLAYBOOK)]
    own += [f"{world.session.get_absolute_url()}/close"]
    for browser, pages in ((owner, own), (client, list(PUBLIC))):
        for form in [one for one in forms_of(browser, pages) if one.method == "post"]:
            for page in wrong_posts(browser, form):
                assert errors_twice(page) == [], form.action
    pages_forms = {one.__name__ for one in forms_below(ServiceForm) if ".web." in one.__module__}
    assert pages_forms - shown == ELSEWHERE
