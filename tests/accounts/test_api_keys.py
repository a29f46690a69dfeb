"""API keys are created, limited, used, rotated and revoked."""

from datetime import timedelta
from unittest.mock import patch

import pytest
from django.db import OperationalError
from django.db.models import QuerySet
from django.utils import timezone

from accounts.keys import key_format
from accounts.keys.api_keys import revoke_api_key, rotate_api_key, update_api_key
from accounts.keys.authentication import principal_for_key
from accounts.models import ApiKey, User
from accounts.web.forms import ApiKeyForm
from core.errors import Conflict, Invalid, NotAuthenticated
from core.security.scopes import Scope
from playbooks.models import Playbook
from tests.factories import make_key, make_playbook

OWN = "operator-chosen-key-0123456789"


def test_the_secret_is_not_stored(alice: User) -> None:
    key, token = make_key(alice)
    stored = " ".join(str(value) for value in vars(key).values())
    assert token not in stored
    assert token[22:] not in stored
    assert key.digest == key_format.digest(token)


def test_a_key_has_only_its_scopes(alice: User) -> None:
    _, token = make_key(alice, scopes=[Scope.READ])
    assert principal_for_key(token).scopes == {Scope.READ}


def test_a_key_never_has_the_account_scope(alice: User) -> None:
    with pytest.raises(Invalid):
        make_key(alice, scopes=["read", "account"])


def test_a_key_without_scopes_is_refused(alice: User) -> None:
    with pytest.raises(Invalid):
        make_key(alice, scopes=[])


def test_a_key_expires_after_ninety_days_by_default(alice: User) -> None:
    key, _ = make_key(alice)
    assert key.expires_at is not None
    assert timedelta(days=89) < key.expires_at - timezone.now() <= timedelta(days=90)


def test_a_key_can_be_limited_to_own_playbooks(alice: User, playbook: Playbook) -> None:
    _, token = make_key(alice, playbook_ids=[playbook.pk])
    assert principal_for_key(token).playbook_ids == frozenset({playbook.pk})


def test_a_key_cannot_be_limited_to_a_strangers_playbook(alice: User, charlie: User) -> None:
    foreign = make_playbook(charlie)
    with pytest.raises(Invalid) as refused:
        make_key(alice, playbook_ids=[foreign.pk])
    assert "playbook_ids" in refused.value.fields


def test_a_change_of_scopes_acts_on_the_next_request(alice: User) -> None:
    key, token = make_key(alice)
    update_api_key(key=key, scopes=["read"])
    assert principal_for_key(token).scopes == {Scope.READ}


def test_a_revoked_key_is_refused_on_the_next_request(alice: User) -> None:
    key, token = make_key(alice)
    principal_for_key(token)
    revoke_api_key(key=key, reason="lost laptop")
    with pytest.raises(NotAuthenticated):
        principal_for_key(token)


def test_revoking_twice_keeps_the_first_time_and_reason(alice: User) -> None:
    key, _ = make_key(alice)
    first = revoke_api_key(key=key, reason="first")
    again = revoke_api_key(key=key, reason="second")
    assert (again.revoked_at, again.revoked_reason) == (first.revoked_at, "first")


def test_an_expired_key_is_refused(alice: User) -> None:
    key, token = make_key(alice)
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now())
    with pytest.raises(NotAuthenticated):
        principal_for_key(token)


def test_a_key_of_an_inactive_user_is_refused(alice: User) -> None:
    _, token = make_key(alice)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    with pytest.raises(NotAuthenticated):
        principal_for_key(token)


def test_the_right_id_with_another_secret_is_refused(alice: User) -> None:
    key, _ = make_key(alice)
    body = f"ace_live_{key.prefix}_{'0' * 43}"
    forged = body + key_format._checksum(body)
    assert key_format.parse(forged) == key.prefix
    with pytest.raises(NotAuthenticated):
        principal_for_key(forged)


def test_rotation_keeps_the_old_key_for_the_overlap(alice: User) -> None:
    key, token = make_key(alice, scopes=["read"])
    fresh, new_token = rotate_api_key(key=key, overlap=timedelta(hours=1))
    assert principal_for_key(new_token).scopes == {Scope.READ}
    assert principal_for_key(token).api_key == key
    key.refresh_from_db()
    assert key.expires_at is not None
    assert key.expires_at <= timezone.now() + timedelta(hours=1)
    assert fresh.rotated_from == key


def test_rotation_without_overlap_ends_the_old_key_now(alice: User) -> None:
    key, token = make_key(alice)
    rotate_api_key(key=key, overlap=timedelta(0))
    with pytest.raises(NotAuthenticated):
        principal_for_key(token)


@pytest.mark.parametrize("days", [-1, 8])
def test_an_overlap_outside_seven_days_is_refused(alice: User, days: int) -> None:
    key, _ = make_key(alice)
    with pytest.raises(Invalid):
        rotate_api_key(key=key, overlap=timedelta(days=days))


def test_a_rotated_key_is_not_rotated_again(alice: User) -> None:
    key, _ = make_key(alice)
    rotate_api_key(key=key)
    with pytest.raises(Conflict):
        rotate_api_key(key=key)


def test_a_revoked_key_is_not_rotated(alice: User) -> None:
    key, _ = make_key(alice)
    revoke_api_key(key=key, reason="")
    with pytest.raises(Conflict):
        rotate_api_key(key=key)


def test_the_operators_own_key_works_and_does_not_expire(alice: User) -> None:
    key, token = make_key(alice, token=OWN)
    assert (token, key.expires_at) == (OWN, None)
    assert principal_for_key(OWN).user == alice


@pytest.mark.parametrize("token", ["short", "with space " * 4, "a.b.c" * 8, "é" * 30])
def test_a_weak_or_malformed_operator_key_is_refused(alice: User, token: str) -> None:
    with pytest.raises(Invalid):
        make_key(alice, token=token)


def test_last_use_is_written_at_most_once_a_minute(alice: User) -> None:
    key, token = make_key(alice)
    principal_for_key(token)
    key.refresh_from_db()
    first = key.last_used_at
    principal_for_key(token)
    key.refresh_from_db()
    assert first is not None
    assert key.last_used_at == first


def test_a_request_survives_when_the_last_use_cannot_be_written(alice: User) -> None:
    _, token = make_key(alice)
    with patch.object(QuerySet, "update", side_effect=OperationalError("locked")):
        assert principal_for_key(token).user == alice


def test_the_form_offers_the_playbooks_that_changed_last(
    alice: User, charlie: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_playbook(charlie, name="Stranger's")
    for name in ("B", "C", "A"):
        make_playbook(alice, name=name)
    monkeypatch.setattr("accounts.web.forms.MAX_PLAYBOOKS_SHOWN", 2)
    field = ApiKeyForm(alice).fields["playbook_ids"]
    assert [label for _, label in field.choices] == ["A", "C"]  # type: ignore[attr-defined]
    assert "REST takes the id of any other" in field.help_text
    monkeypatch.setattr("accounts.web.forms.MAX_PLAYBOOKS_SHOWN", 4)
    assert "REST" not in ApiKeyForm(alice).fields["playbook_ids"].help_text
