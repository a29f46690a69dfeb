"""What a page sends: compressed, at most 100 KiB with all its files, and never a secret packed."""

import gzip
import re

from django.conf import settings
from django.test import Client

from accounts.models import User
from tests.factories import make_playbook

LIMIT = 100 * 1024
FILE = re.compile(r'(?:src|href)="(/static/[^"]+)"')
LINE = "[str-{0:05d}] helpful={0} harmful=0 :: Case {0}: read what test {1} expects, then change."
BIG = "## OTHERS\n" + "\n".join(LINE.format(n, n * 31 % 97) for n in range(1, 501))


def sent(client: Client, address: str) -> bytes:
    response = client.get(address, headers={"Accept-Encoding": "gzip"})
    assert response.status_code == 200, address
    assert response["Content-Encoding"] == "gzip", address
    assert "Accept-Encoding" in response["Vary"]
    return b"".join(response) if response.streaming else response.content


def test_five_hundred_bullets_with_every_file_are_light(owner: Client, alice: User) -> None:
    playbook = make_playbook(alice, text=BIG)
    page = sent(owner, playbook.get_absolute_url())
    html = gzip.decompress(page).decode()
    files = sorted(set(FILE.findall(html)))
    assert len(files) > 10
    assert len(page) + sum(len(sent(owner, file)) for file in files) <= LIMIT
    every = sent(owner, f"{playbook.get_absolute_url()}?section=others")
    assert len(every) <= LIMIT // 4


def test_a_page_that_shows_a_secret_is_not_compressed(owner: Client) -> None:
    form = {"name": "laptop", "scopes": ["read"], "days": "30"}
    response = owner.post("/keys", form, headers={"Accept-Encoding": "gzip"})
    assert b"ace_live_" in response.content
    assert not response.has_header("Content-Encoding")
    assert "no-store" in response["Cache-Control"]


def test_a_browser_that_cannot_unpack_gets_plain_text(owner: Client) -> None:
    response = owner.get("/playbooks")
    assert not response.has_header("Content-Encoding")
    file = owner.get(f"/{settings.STATIC_URL.strip('/')}/css/base.css")
    assert not file.has_header("Content-Encoding")
    assert b"".join(file)
