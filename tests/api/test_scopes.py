"""Every route declares its scope, and a credential without it is refused."""

import pytest
from django.test import RequestFactory
from rest_framework.response import Response

from accounts.models import ApiKey, User
from core.rest.views import BaseViewSet
from core.security.scopes import KEY_SCOPES, granted_scopes
from evolution.models import Outcome
from playbooks.models import Playbook
from tests.harness.rest_client import Rest
from tests.harness.rest_routes import PROTECTED, ROUTES, Route, World, served

NAMES = dict.fromkeys(
    ("playbook", "key", "job", "app", "session", "trial", "outcome", "share"), "<uuid:pk>"
) | {"review": "<uuid:review>"}


def pattern(route: Route) -> str:
    """The route as urls.py writes it."""
    path = (
        route.path.partition("?")[0].format(**NAMES).replace("versions/1", "versions/<int:number>")
    )
    return path.replace("str-00001", "<str:bullet>")


def test_every_route_declares_the_scope_of_the_table() -> None:
    expected = {(route.method, pattern(route)): route.scope for route in ROUTES}
    assert {(method, f"/{path}"): scope for method, path, scope in served()} == expected


def test_a_view_without_a_declaration_is_refused_to_everyone(alice: User) -> None:
    class Forgotten(BaseViewSet):
        def read(self, request: object) -> Response:
            return Response("secret")

    token = Rest.of(alice).token
    request = RequestFactory().get("/", headers={"Authorization": f"Bearer {token}"})
    assert Forgotten.as_view({"get": "read"})(request).status_code == 403


@pytest.mark.parametrize("route", PROTECTED, ids=str)
def test_a_key_with_every_other_scope_is_refused(world: World, alice: User, route: Route) -> None:
    others = [scope for scope in KEY_SCOPES if route.scope not in granted_scopes([scope])]
    answer = Rest.key(alice, *others).send(route.method, world.path(route), world.body(route))
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "insufficient_scope"
    assert f"`{route.scope}`" in answer.json()["error"]["message"]


KEYS_MAY = [route for route in PROTECTED if route.scope in KEY_SCOPES]


@pytest.mark.parametrize("route", KEYS_MAY, ids=str)
def test_a_key_with_just_this_scope_is_accepted(world: World, alice: User, route: Route) -> None:
    assert route.scope is not None
    rest = Rest.key(alice, route.scope)
    Outcome.objects.update(api_key=ApiKey.objects.latest("created_at"))  # a key corrects its own
    answer = rest.send(route.method, world.path(route), world.body(route))
    assert answer.status_code in {200, 201, 202, 204, 409}


@pytest.mark.parametrize("verb", ["patch", "put"])
def test_no_api_key_decides_a_review_item(playbook: Playbook, alice: User, verb: str) -> None:
    """An agent with write access must not approve what agents contributed."""
    path, body = f"/playbooks/{playbook.pk}", {"name": "Mine", "review_policy": "none"}
    refused = getattr(Rest.key(alice), verb)(path, body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "insufficient_scope")
    assert getattr(Rest.of(alice), verb)(path, {**body, "review_policy": "all"}).status_code == 200
    assert getattr(Rest.key(alice), verb)(path, {"name": "Yours"}).status_code == 200
    playbook.refresh_from_db()
    assert (playbook.name, playbook.review_policy) == ("Yours", "all")
