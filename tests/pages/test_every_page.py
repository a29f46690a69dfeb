"""What holds on every page: who may see it, and nothing inline."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.harness.page_urls import ADMIN, PUBLIC, common_pages, own_pages, staff_pages
from tests.harness.sample_account import World

pytestmark = pytest.mark.postgres

INLINE = (
    re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)", re.IGNORECASE),
    re.compile(r"<style", re.IGNORECASE),
    re.compile(r"<[^>]+\sstyle=", re.IGNORECASE),
    re.compile(r"<[^>]+\son[a-z]+=", re.IGNORECASE),
    re.compile(r"javascript:", re.IGNORECASE),
    re.compile(r"<[^>]+(?:src|href|action)=[\"']?(?:https?:)?//(?!testserver)", re.IGNORECASE),
)
ADMIN_INLINE = INLINE[:4]


def faults(response: Any, rules: tuple[re.Pattern[str], ...] = INLINE) -> list[str]:
    """What a strict policy would block in this page."""
    html = response.content.decode()
    found = [match.group() for rule in rules for match in rule.finditer(html)]
    policy = response.headers.get("Content-Security-Policy", "")
    strict = "default-src 'none'" in policy and "unsafe" not in policy
    return found if strict else [*found, f"policy: {policy!r}"]


def test_the_owner_sees_every_page_and_none_has_anything_inline(
    owner: Client, world: World
) -> None:
    for address in [*common_pages(), *own_pages(world), world.starter.get_absolute_url()]:
        response = owner.get(address)
        assert response.status_code == 200, address
        assert faults(response) == [], address


def test_a_stranger_finds_nothing_on_the_owners_pages(stranger: Client, world: World) -> None:
    for address in own_pages(world):
        response = stranger.get(address)
        assert response.status_code == 404, address
        assert faults(response) == [], address
        assert world.playbook.name not in response.content.decode()


def test_staff_finds_nothing_there_either(admin_page: Client, world: World) -> None:
    assert {admin_page.get(address).status_code for address in own_pages(world)} == {404}


def test_nobody_is_sent_to_the_login_first(client: Client, world: World) -> None:
    for address in [*common_pages(), *own_pages(world)]:
        response = client.get(address)
        assert response.status_code == 302, address
        assert response["Location"].startswith("/login?next="), address


def test_public_pages_have_nothing_inline(client: Client, db: None) -> None:
    for address in PUBLIC:
        assert faults(client.get(address)) == [], address


def test_a_missing_and_a_foreign_playbook_look_the_same(stranger: Client, world: World) -> None:
    foreign = stranger.get(world.playbook.get_absolute_url()).content.decode()
    missing = stranger.get("/playbooks/00000000-0000-4000-8000-000000000000").content.decode()
    fresh = r"<code>[0-9a-f]{32}</code>|value=\"[0-9A-Za-z]{64}\""
    assert re.sub(fresh, "", foreign) == re.sub(fresh, "", missing)


def test_staff_sees_every_admin_page(admin_page: Client, world: World) -> None:
    for address in [*ADMIN, *staff_pages(world)]:
        response = admin_page.get(address)
        assert response.status_code == 200, address
        assert faults(response, ADMIN_INLINE) == [], address


def test_people_who_are_not_staff_get_a_403_page(owner: Client) -> None:
    response = owner.get("/admin/", follow=True)
    assert response.status_code == 403
    assert "isn&#x27;t staff" in response.content.decode()


def test_the_admin_has_no_login_of_its_own(client: Client, db: None) -> None:
    response = client.get("/admin/login/?next=/admin/evolution/")
    assert response["Location"] == f"{reverse('accounts:log_in')}?next=%2Fadmin%2Fevolution%2F"


def test_a_trace_is_text_never_html(owner: Client, world: World) -> None:
    page = owner.get(world.outcome.get_absolute_url()).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(&quot;trace&quot;)&lt;/script&gt;" in page


def test_every_write_refuses_a_get(owner: Client, world: World) -> None:
    one = world.playbook.get_absolute_url()
    job = world.queued.get_absolute_url()
    writes = [f"{one}/{verb}" for verb in ("edit", "clone", "archive", "restore")]
    for address in [*writes, f"{job}/cancel", f"{job}/retry", "/logout"]:
        assert owner.get(address).status_code == 405, address


def test_a_stranger_can_change_nothing(stranger: Client, world: World) -> None:
    one = world.playbook.get_absolute_url()
    verbs = ("edit", "clone", "archive", "restore", "settings", "outcomes/new", "evolutions")
    jobs = [
        f"{job.get_absolute_url()}/{verb}"
        for job, verb in zip((world.queued, world.failed), ("cancel", "retry"), strict=True)
    ]
    keys = [reverse(f"accounts:{verb}_key", args=[world.key.pk]) for verb in ("rotate", "revoke")]
    writes = [*(f"{one}/{verb}" for verb in verbs), f"{one}/versions/1/rollback", *jobs, *keys]
    assert {stranger.post(address, {"x": "1"}).status_code for address in writes} == {404}
