"""Setting up a required second factor takes more than the password."""

import re
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.core import mail
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from accounts.mfa.second_factor import ENROLMENT, enrolment_path
from accounts.models import User
from accounts.services.account_settings import request_email_change
from core.errors import Forbidden
from core.models import AuditEntry
from tests.factories import PASSWORD
from tests.harness.mfa import set_up_totp, totp_code

APP, FIRST = "/settings/second-factor/app", "/settings/second-factor/first"


@pytest.fixture(autouse=True)
def required(settings: Settings) -> None:
    settings.STAFF_SECOND_FACTOR = True


@pytest.fixture
def entered(staff: User) -> Client:
    """Somebody with the password of staff, who has no second factor yet."""
    client = Client()
    client.post("/login", {"email": staff.email, "password": PASSWORD})
    return client


def set_up(client: Client) -> Any:
    page = client.get(APP).content.decode()
    found = re.search(r'<code class="secret">(\w+)</code>', page)
    assert found
    return client.post(APP, {"code": totp_code(found[1])})


@pytest.mark.parametrize("address", [APP, "/settings/second-factor/passkeys/new"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_password_alone_sets_up_no_factor(entered: Client, address: str, method: str) -> None:
    assert getattr(entered, method)(address, {"code": "123456"})["Location"] == FIRST
    assert not Authenticator.objects.exists()


def test_the_link_of_an_email_opens_the_setup(entered: Client, staff: User) -> None:
    assert entered.get(FIRST).status_code == 200
    assert entered.post(FIRST)["Location"] == "/settings/second-factor"
    assert mail.outbox[-1].to == [staff.email]
    found = re.search(r"http\S+(/settings/second-factor/first/\S+)", str(mail.outbox[-1].body))
    assert found
    entered.get(found[1])
    assert set_up(entered)["Location"] == "/settings/second-factor/codes"
    made = {"request_enrolment", "confirm_enrolment"}
    assert made <= set(AuditEntry.objects.values_list("action", flat=True))


def test_the_link_is_refused_in_another_users_session(
    entered: Client, owner: Client, alice: User, staff: User
) -> None:
    alice.second_factor_required = True
    alice.save()
    assert owner.get(enrolment_path(staff)).status_code == 400
    assert Client().get(enrolment_path(staff))["Location"].startswith("/login")
    assert owner.get(APP)["Location"] == entered.get(APP)["Location"] == FIRST


@pytest.mark.parametrize("spoiled", ["old", "forged", "password", "used"])
def test_an_expired_or_used_link_is_refused(
    entered: Client, staff: User, monkeypatch: pytest.MonkeyPatch, spoiled: str
) -> None:
    path = enrolment_path(staff)
    if spoiled == "old":
        monkeypatch.setattr(ENROLMENT, "seconds", -1)
    elif spoiled == "forged":
        path = path[:-2]
    elif spoiled == "password":
        User.objects.filter(pk=staff.pk).update(password="another")
        entered.force_login(User.objects.get(pk=staff.pk))
    else:
        set_up_totp(staff)
    assert entered.get(path).status_code == 400


def test_the_address_cannot_be_changed_before_setup(entered: Client, staff: User) -> None:
    with pytest.raises(Forbidden):
        request_email_change(user=staff, email="thief@example.org", site="https://x")
    sent = {"email": "thief@example.org"}
    assert entered.post("/settings/email", sent).status_code == 403
    staff.refresh_from_db()
    assert staff.pending_email == ""


def test_users_with_a_factor_or_without_need_get_no_link(owner: Client, staff: User) -> None:
    assert owner.get(FIRST)["Location"] == "/settings/second-factor"
    set_up_totp(staff)
    client = Client()
    client.force_login(staff)
    assert client.get(FIRST)["Location"] == "/settings/second-factor"


def test_an_operator_can_print_the_link(
    entered: Client, staff: User, capsys: pytest.CaptureFixture[str], settings: Settings
) -> None:
    settings.PUBLIC_URL = "https://ace.example"
    call_command("enrol_second_factor", staff.email)
    link = capsys.readouterr().out.strip()
    assert link.startswith(f"https://ace.example{FIRST}/")
    entered.get(link.removeprefix("https://ace.example"))
    assert set_up(entered).status_code == 302
    with pytest.raises(CommandError):
        call_command("enrol_second_factor", "nobody@example.org")
