"""Every refusal is a page of ours: what it is, what to do, and the id to tell us."""

import pytest
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path

from accounts.models import User
from config import urls as real
from core.errors import Conflict, Forbidden, Invalid, RateLimited
from playbooks.models import Playbook
from tests.factories import make_outcome

ID = "abcdefgh-7"
ERRORS = {
    "400": Invalid("That did not fit."),
    "403": Forbidden("Not with this account."),
    "409": Conflict("Somebody was faster."),
    "429": RateLimited("Too often.", retry_after=30),
}


def refuse(request: HttpRequest, name: str) -> HttpResponse:
    raise ERRORS[name]


def suspect(request: HttpRequest) -> HttpResponse:
    raise SuspiciousOperation("secret detail")


urlpatterns = [path("refuse/<str:name>", refuse), path("suspect", suspect), *real.urlpatterns]
handler400, handler404 = real.handler400, real.handler404


@pytest.mark.parametrize("name", ERRORS)
@override_settings(ROOT_URLCONF=__name__)
def test_a_refusal_is_a_page_with_the_request_id(owner: Client, name: str) -> None:
    response = owner.get(f"/refuse/{name}", headers={"X-Request-ID": ID})
    page = response.content.decode()
    assert response.status_code == int(name)
    assert str(ERRORS[name]) in page
    assert f"<code>{ID}</code>" in page
    assert 'class="wordmark"' in page


@override_settings(ROOT_URLCONF=__name__)
def test_too_often_says_once_when_to_come_back(owner: Client) -> None:
    response = owner.get("/refuse/429")
    assert response["Retry-After"] == "30"
    page = response.content.decode()
    assert (page.count("in 30 s"), page.count("Try again")) == (1, 1)


@override_settings(ROOT_URLCONF=__name__)
def test_a_suspicious_request_gets_a_page_without_details(owner: Client) -> None:
    response = owner.get("/suspect", headers={"X-Request-ID": ID})
    assert response.status_code == 400
    assert ID in response.content.decode()
    assert "secret detail" not in response.content.decode()


def test_a_wrong_host_gets_a_page(client: Client, db: None) -> None:
    assert "evil.example" not in settings.ALLOWED_HOSTS
    response = client.get("/", headers={"Host": "evil.example", "X-Request-ID": ID})
    assert (response.status_code, ID in response.content.decode()) == (400, True)


@pytest.mark.parametrize("address", ["/nothing", "/playbooks/not-an-id", "/keys/1/revoke"])
def test_nothing_there_is_a_page_with_the_request_id(owner: Client, address: str) -> None:
    response = owner.get(address, headers={"X-Request-ID": ID})
    assert response.status_code == 404
    assert ID in response.content.decode()


def test_evolving_too_often_is_a_page_that_says_when(
    owner: Client, playbook: Playbook, alice: User
) -> None:
    make_outcome(playbook, alice)
    one = f"{playbook.get_absolute_url()}/evolutions"
    with override_settings(RATE_LIMITS=settings.RATE_LIMITS | {"trigger_evolution": "1/h"}):
        job = owner.post(one)["Location"]
        owner.post(f"{job}/cancel")
        response = owner.post(one)
    assert response.status_code == 429
    assert int(response["Retry-After"]) > 0
