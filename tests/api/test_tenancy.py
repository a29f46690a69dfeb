"""Rows of another owner do not exist: every route, every identity, every reference."""

import io
import uuid
import zipfile
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.keys import key_format
from accounts.keys.api_keys import revoke_api_key
from accounts.keys.jwt_tokens import issue_tokens
from accounts.models import ApiKey, User
from evolution.models import Outcome
from playbooks.models import Playbook, Version
from tests.factories import make_key, make_playbook
from tests.harness.rest_client import Rest
from tests.harness.rest_routes import (
    CANARY,
    OWNED,
    PROTECTED,
    Route,
    World,
    access_token,
    make_world,
)

pytestmark = pytest.mark.postgres

UNDER_PLAYBOOK = [r for r in OWNED if r.is_under_playbook and r.scope != "account"]


def error(answer: Any) -> dict[str, Any]:
    """The error without the id of the request, to compare two answers."""
    found: dict[str, Any] = answer.json()["error"]
    return found


@pytest.mark.parametrize("route", PROTECTED, ids=str)
def test_the_owner_gets_access(world: World, alice: User, route: Route) -> None:
    answer = Rest(access_token(alice)).send(route.method, world.path(route), world.body(route))
    if "billing" in route.path and answer.status_code == 404:
        assert error(answer)["code"] == "billing_disabled"
    else:
        assert answer.status_code in {200, 201, 202, 204, 409}


@pytest.mark.parametrize("identity", ["stranger", "staff", "stranger's key"])
def test_anybody_else_gets_the_answer_for_a_missing_row(
    world: World, charlie: User, staff: User, identity: str
) -> None:
    """Every route in one test: a refusal changes nothing."""
    token = access_token(staff if identity == "staff" else charlie)
    if identity == "stranger's key":
        token = make_key(charlie)[1]
    rest, missing = Rest(token), World(dict.fromkeys(world.ids, str(uuid.uuid4())), "", "")
    for route in OWNED:
        if identity == "stranger's key" and route.scope == "account":
            continue  # a key may not ask this at all: tested with the scopes
        theirs = rest.send(route.method, world.path(route), route.body)
        nobodys = rest.send(route.method, missing.path(route), route.body)
        assert (theirs.status_code, nobodys.status_code) == (404, 404), route
        assert error(theirs) == error(nobodys), route


@pytest.mark.parametrize("route", UNDER_PLAYBOOK, ids=str)
def test_a_key_limited_to_another_playbook_does_not_reach_this_one(
    world: World, alice: User, route: Route
) -> None:
    other = make_playbook(alice, name="Other")
    rest = Rest.key(alice, playbook_ids=[other.pk])
    assert rest.send(route.method, world.path(route), route.body).status_code == 404


@pytest.mark.parametrize("route", UNDER_PLAYBOOK, ids=str)
def test_a_limited_key_reaches_its_own_playbook(world: World, alice: User, route: Route) -> None:
    rest = Rest.key(alice, playbook_ids=[world.ids["playbook"]])
    Outcome.objects.update(api_key=ApiKey.objects.latest("created_at"))  # a key corrects its own
    answer = rest.send(route.method, world.path(route), world.body(route))
    assert answer.status_code in {200, 201, 202, 204, 409} or "clone" in route.path


def test_a_limited_key_lists_only_what_it_reaches(world: World, alice: User) -> None:
    other = make_playbook(alice, name="Other")
    listed = Rest.key(alice, playbook_ids=[other.pk]).get("/playbooks?status=all").json()
    assert [row["id"] for row in listed["results"]] == [str(other.pk)]


@pytest.mark.parametrize("who", ["charlie", "staff"])
def test_no_byte_of_another_tenant_is_sent(
    world: World, charlie: User, staff: User, who: str
) -> None:
    """Every route in one test: reading changes nothing, and the rows take longer to make."""
    user = {"charlie": charlie, "staff": staff}[who]
    rest, own = Rest.of(user), make_world(user, canary="own")
    leaking = [
        (str(route), ids is own)
        for route in PROTECTED
        for ids in (world, own)
        if route.method == "GET" and CANARY in comparable(rest.get(ids.path(route)))
    ]
    assert leaking == []


def comparable(answer: Any) -> str:
    """Every byte as text, of the files in an archive too."""
    body: bytes = answer.content
    if answer["Content-Type"] != "application/zip":
        return body.decode()
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        return "".join(archive.read(name).decode() for name in archive.namelist())


def refused_tokens(alice: User, charlie: User) -> dict[str, str]:
    """Credentials that were never good, or are not any more."""
    expired, revoked = make_key(alice), make_key(alice)
    ApiKey.objects.filter(pk=expired[0].pk).update(expires_at=timezone.now() - timedelta(days=1))
    revoke_api_key(key=revoked[0], reason="")
    gone = make_key(charlie)[1]
    access = access_token(charlie)
    charlie.delete()
    return {
        "expired": expired[1],
        "revoked": revoked[1],
        "of a deleted user": gone,
        "access of a deleted user": access,
        "never made": key_format.mint().token,
        "typo": expired[1][:-1],
        "malformed": "ace_live_",
        "refresh": issue_tokens(user=alice).refresh,
        "not a token": "a.b.c",
        "latin-1": "ünïcödé",
    }


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.nightly)])
def test_every_bad_credential_gets_the_same_401(
    world: World, alice: User, charlie: User, step: int
) -> None:
    """Every route in one test: a refusal changes nothing.

    One class authenticates for all routes: each meets some of the credentials, in turn.
    """
    tokens = list(refused_tokens(alice, charlie).items())
    wrong = []
    for number, route in enumerate(PROTECTED):
        assert Rest().send(route.method, world.path(route), route.body).status_code == 401, route
        unknown = Rest("unknown").send(route.method, world.path(route), route.body)
        for name, token in tokens[number % step :: step]:
            answer = Rest(token).send(route.method, world.path(route), route.body)
            if (answer.status_code, error(answer)) != (401, error(unknown)):
                wrong.append((str(route), name))
    assert wrong == []


def test_a_key_cannot_be_created_for_a_strangers_playbook(world: World, charlie: User) -> None:
    body = {"name": "a", "scopes": ["read"], "playbook_ids": [world.ids["playbook"]]}
    answer = Rest.of(charlie).post("/auth/api-keys", body)
    assert list(error(answer)["fields"]) == ["playbook_ids"]
    assert not ApiKey.objects.filter(user=charlie).exists()


def test_a_strangers_serving_counts_for_nothing_and_is_named(world: World, charlie: User) -> None:
    own = make_playbook(charlie)
    body = {"task_description": "a", "outcome": "success", "serving_id": world.serving_id}
    answer = Rest.of(charlie).post(f"/playbooks/{own.pk}/outcomes", body)
    assert answer.status_code == 201
    assert "serving_id" in answer.json()["warnings"][0]
    stored = Outcome.objects.get(playbook=own)
    assert (stored.version_assumed, stored.trial) == (True, None)


def test_a_strangers_writes_change_no_row(world: World, charlie: User) -> None:
    before = (Playbook.objects.values_list().get(), Version.objects.count())
    for route in OWNED:
        if route.method != "GET":
            Rest(access_token(charlie)).send(route.method, world.path(route), route.body)
    assert (Playbook.objects.values_list().get(), Version.objects.count()) == before


def test_an_idempotency_key_of_a_stranger_replays_nothing(world: World, charlie: User) -> None:
    path = f"/playbooks/{world.ids['playbook']}/clone"
    owner = Rest(world.token).post(path, {}, Idempotency_Key="shared")
    assert owner.status_code == 201
    stranger = Rest.of(charlie).post(path, {}, Idempotency_Key="shared")
    assert stranger.status_code == 404


ADD = {"operations": [{"type": "ADD", "section": "str", "content": "Read it twice."}]}


@pytest.mark.parametrize(("action", "body", "status"), [("deltas", ADD, 404), ("clone", {}, 409)])
def test_a_stored_response_is_not_replayed_to_a_narrower_key(
    world: World, alice: User, action: str, body: dict[str, Any], status: int
) -> None:
    path = f"/playbooks/{world.ids['playbook']}/{action}"
    assert Rest(world.token).post(path, body, Idempotency_Key="one").status_code == 201
    other = make_playbook(alice, name="Other")
    narrow = Rest.key(alice, playbook_ids=[other.pk]).post(path, body, Idempotency_Key="one")
    assert narrow.status_code == status
    assert CANARY not in narrow.content.decode()
