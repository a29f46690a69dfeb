"""The forms of pages, as a browser reads them."""

from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urljoin

from django.test import Client

NOT_TEXT = {"checkbox", "radio", "submit", "button", "file", "hidden"}


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
