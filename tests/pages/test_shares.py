"""Share links: read by anybody who has one, without names and ids, until revoked or expired."""

import re
from datetime import timedelta

import pytest
from django.test import Client

from accounts.models import User
from core.clock import database_now
from core.errors import Conflict
from core.models import AuditEntry
from core.security.scopes import Principal
from evolution import sharing
from evolution.models import ShareLink
from evolution.sharing import create_share_link
from playbooks.document.operations import Operation
from playbooks.models import Playbook
from playbooks.services.editing import edit_playbook
from tests.factories import make_outcome
from tests.harness.clients import logged_in_client
from tests.harness.rest_client import Rest


@pytest.fixture
def edited(playbook: Playbook, alice: User) -> Playbook:
    """At version 2, with an outcome under it."""
    by = Principal.of(alice)
    change = Operation("UPDATE", id="str-00001", content="Read the log.", reason="Said alice.")
    edit_playbook(playbook=playbook, by=by, operations=[change])
    make_outcome(playbook, alice, task_description="Call alice@example.org")
    return playbook


def share(client: Client, playbook: Playbook, **sent: object) -> str:
    """The path of a new link, as its owner copies it."""
    address = f"{playbook.get_absolute_url()}/shares"
    page = client.post(address, {"kind": "diff", "days": 7, **sent}).content.decode()
    found = re.search(r'id="share-url"[^>]*>https?://[^/]+(/share/[\w-]{43})<', page)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("sent", "shown"),
    [({"version": 2, "against": 1}, "<ins>log.</ins>"), ({"kind": "evidence"}, "By version")],
)
def test_anybody_with_the_link_reads_it_and_nobody_is_named(
    owner: Client, edited: Playbook, alice: User, sent: dict[str, object], shown: str
) -> None:
    path = share(owner, edited, **sent)
    answer = Client().get(path)
    page = answer.content.decode()
    assert shown in page
    main = page[page.index("<main") : page.index("</main>")]
    assert not re.search(r"alice|[0-9a-f]{8}-[0-9a-f]{4}-", main, re.IGNORECASE)
    assert "<form" not in main
    assert answer["X-Robots-Tag"] == "noindex, nofollow"
    assert "no-store" in answer["Cache-Control"]
    assert '<meta name="robots" content="noindex, nofollow">' in page
    assert Client().post(path).status_code == 405


def test_only_a_digest_is_stored_and_the_link_is_shown_once(
    owner: Client, edited: Playbook
) -> None:
    token = share(owner, edited).rpartition("/")[2]
    assert token not in str(list(ShareLink.objects.values()) + list(AuditEntry.objects.values()))
    page = owner.get(f"{edited.get_absolute_url()}/shares").content.decode()
    assert "From version 1 to version 2" in page and token not in page


def test_a_revoked_or_expired_link_is_not_found(owner: Client, edited: Playbook) -> None:
    first, second = share(owner, edited), share(owner, edited, kind="evidence")
    link = ShareLink.objects.get(kind="diff")
    owner.post(f"/shares/{link.pk}/revoke")
    ShareLink.objects.update(expires_at=database_now() - timedelta(seconds=1))
    answers = [Client().get(path) for path in (first, second, f"/share/{'x' * 43}")]
    assert [answer.status_code for answer in answers] == [404] * 3
    assert all(
        "No shared page found with this link. It has expired or was revoked." in a.content.decode()
        for a in answers
    )


def test_the_links_of_a_disabled_account_do_not_open(
    owner: Client, edited: Playbook, alice: User
) -> None:
    path = share(owner, edited)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert Client().get(path).status_code == 404


@pytest.mark.parametrize("who", ["charlie", "staff"])
def test_nobody_else_sees_makes_or_revokes_links(
    owner: Client, edited: Playbook, who: str, request: pytest.FixtureRequest
) -> None:
    share(owner, edited)
    link, other = ShareLink.objects.get(), logged_in_client(request.getfixturevalue(who))
    address = f"{edited.get_absolute_url()}/shares"
    assert other.get(address).status_code == other.post(address, {}).status_code == 404
    assert other.post(f"/shares/{link.pk}/revoke").status_code == 404
    assert Client().get(address).status_code == 302
    assert ShareLink.objects.get() == link


def test_rest_has_the_same_verbs(edited: Playbook, alice: User, charlie: User) -> None:
    rest, path = Rest.of(alice), f"/playbooks/{edited.pk}/shares"
    made = rest.post(path, {"kind": "diff", "version": 2}).json()
    assert (made["version"], made["against"]) == (2, 1)
    assert Client().get(made["url"].partition("testserver")[2]).status_code == 200
    (listed,) = rest.get(path).json()["results"]
    assert listed == {name: value for name, value in made.items() if name != "url"}
    assert Rest.of(charlie).delete(f"/shares/{made['id']}").status_code == 404
    assert Rest.key(alice).delete(f"/shares/{made['id']}").status_code == 403
    assert rest.delete(f"/shares/{made['id']}").status_code == 204
    for sent in ({"kind": "diff", "days": 0}, {"kind": "outcome"}, {"kind": "diff", "days": 366}):
        assert rest.post(path, sent).status_code == 400
    assert rest.post(path, {"kind": "diff", "version": 9}).status_code == 404
    assert not ShareLink.objects.exists()


def test_a_playbook_has_so_many_links(
    edited: Playbook, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "MAX_LINKS", 1)
    by = Principal.of(alice)
    create_share_link(playbook=edited, by=by, kind="evidence")
    with pytest.raises(Conflict):
        create_share_link(playbook=edited, by=by, kind="evidence")
    ShareLink.objects.update(expires_at=database_now())
    assert create_share_link(playbook=edited, by=by, kind="evidence")
