"""The first login: generated once, or what the operator says at every start."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.activity import activity_entries
from accounts.keys.api_keys import revoke_api_key
from accounts.keys.authentication import principal_for_key
from accounts.models import ApiKey, User
from accounts.services.login import log_in
from config.management.commands.bootstrap import DEFAULT_EMAIL, FirstLogin, ensure_first_login
from core.models import AuditEntry
from core.security.scopes import Principal, Scope
from playbooks.services.settings import archive_playbook
from tests.factories import PASSWORD, make_key, make_playbook, make_user
from tests.harness.rest_client import Rest

pytestmark = pytest.mark.django_db
EMAIL = "operator@example.org"
KEY = "chosen-by-the-operator-1234"


@pytest.fixture
def chosen(settings: Any) -> Any:
    settings.BOOTSTRAP_EMAIL, settings.BOOTSTRAP_PASSWORD = EMAIL, PASSWORD
    settings.BOOTSTRAP_API_KEY = KEY
    return settings


def sentence_of_refusal() -> str:
    with pytest.raises(CommandError) as refused:
        call_command("bootstrap", stdout=StringIO())
    return str(refused.value)


def test_an_empty_database_gets_a_login_and_a_key_that_work() -> None:
    made = ensure_first_login()
    user = User.objects.get(email=DEFAULT_EMAIL)
    assert user.check_password(made.password)
    assert user.is_staff
    assert user.is_superuser
    assert principal_for_key(made.api_key).user == user


def test_a_chosen_key_is_not_listed_under_a_prefix_that_it_does_not_have(chosen: Any) -> None:
    call_command("bootstrap", stdout=StringIO())
    key = ApiKey.objects.get()
    assert key.hint == "chosen by the operator"
    archived = make_playbook(key.user)
    archive_playbook(playbook=archived, by=Principal(key.user, frozenset(Scope), key))
    rest = Rest.of(key.user)
    assert [row["prefix"] for row in rest.get("/auth/api-keys").json()["results"]] == [""]
    (entry,) = activity_entries(list(AuditEntry.objects.all()[:1]), key.user)
    assert entry["who"] == "Key chosen by the operator"


def test_it_is_printed_once() -> None:
    first, second = StringIO(), StringIO()
    call_command("bootstrap", stdout=first)
    call_command("bootstrap", stdout=second)
    assert "First login, shown once: admin@localhost\n  password  " in first.getvalue()
    assert "  API key   ace_live_" in first.getvalue()
    assert second.getvalue() == ""


def test_nothing_is_generated_where_somebody_registered() -> None:
    make_user("first@example.org")
    assert ensure_first_login() == FirstLogin(DEFAULT_EMAIL)
    assert User.objects.count() == 1


def test_the_operators_choice_is_made_and_not_printed(chosen: Any) -> None:
    out = StringIO()
    call_command("bootstrap", stdout=out)
    user = log_in(email=EMAIL, password=PASSWORD, address="127.0.0.1", site="")
    assert user.is_superuser
    assert principal_for_key(KEY).user == user
    assert out.getvalue() == ""


def test_a_second_start_changes_nothing(chosen: Any) -> None:
    ensure_first_login()
    before = (User.objects.values().get()["password"], ApiKey.objects.values().get())
    ensure_first_login()
    assert (User.objects.values().get()["password"], ApiKey.objects.values().get()) == before


def test_a_new_password_of_the_operators_replaces_the_old_one(chosen: Any) -> None:
    ensure_first_login()
    chosen.BOOTSTRAP_PASSWORD = "another horse battery"
    ensure_first_login()
    assert User.objects.get().check_password("another horse battery")


def test_a_password_alone_is_for_the_first_superuser(chosen: Any) -> None:
    ensure_first_login()
    chosen.BOOTSTRAP_EMAIL = ""
    chosen.BOOTSTRAP_PASSWORD = "another horse battery"
    ensure_first_login()
    assert User.objects.get().check_password("another horse battery")


def test_what_was_not_chosen_is_generated(settings: Any) -> None:
    settings.BOOTSTRAP_EMAIL = EMAIL
    made = ensure_first_login()
    assert made.email == EMAIL
    assert User.objects.get().check_password(made.password)
    assert principal_for_key(made.api_key).user.email == EMAIL


def test_a_key_that_was_revoked_stays_so_and_the_start_goes_on(chosen: Any) -> None:
    ensure_first_login()
    revoke_api_key(key=ApiKey.objects.get(), reason="leaked")
    assert ensure_first_login().warning.startswith("ACE_BOOTSTRAP_API_KEY is revoked")
    assert ApiKey.objects.get().state == "revoked"


def test_a_registered_stranger_does_not_become_staff_without_a_password(settings: Any) -> None:
    make_user(EMAIL)
    settings.BOOTSTRAP_EMAIL = EMAIL
    assert sentence_of_refusal().startswith("Set ACE_BOOTSTRAP_PASSWORD too")
    assert not User.objects.get().is_staff


def test_somebody_elses_key_is_refused(chosen: Any) -> None:
    make_key(make_user("other@example.org"), token=KEY)
    assert sentence_of_refusal().startswith("Set another ACE_BOOTSTRAP_API_KEY")
    assert not User.objects.filter(email=EMAIL).exists()


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("BOOTSTRAP_EMAIL", "operator", "Set ACE_BOOTSTRAP_EMAIL to an email address"),
        ("BOOTSTRAP_PASSWORD", "short", "ACE_BOOTSTRAP_PASSWORD is invalid. This password"),
        ("BOOTSTRAP_API_KEY", "short", "ACE_BOOTSTRAP_API_KEY is invalid. Choose a key of 24"),
    ],
)
def test_a_wrong_choice_stops_with_one_sentence(
    chosen: Any, setting: str, value: str, sentence: str
) -> None:
    setattr(chosen, setting, value)
    assert sentence_of_refusal().startswith(sentence)
    assert not User.objects.exists()
