"""Re-encryption with a new key can be killed at any row and continued."""

from collections import deque
from itertools import islice

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from accounts.keys.llm_keys import set_llm_key
from accounts.management.commands.rotate_encryption import reencrypt_rows
from accounts.models import LlmKey, User
from core.security.encryption import decrypt
from tests.factories import make_user
from tests.harness.mfa import recovery_codes, set_up_totp

pytestmark = pytest.mark.postgres

OLD, NEW = "old" * 20, "new" * 20


@pytest.fixture
def people(db: None, settings: Settings) -> list[User]:
    settings.FIELD_ENCRYPTION_KEYS = [OLD]
    made = [make_user(f"user{number}@example.org") for number in range(3)]
    for user in made:
        set_llm_key(user=user, api_key=f"sk-of-{user.email}")
        set_up_totp(user)
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    return made


def all_open(people: list[User]) -> None:
    for user in people:
        assert decrypt(LlmKey.objects.get(user=user).encrypted_key) == f"sk-of-{user.email}"
        assert len(recovery_codes(user)) == 10


@pytest.mark.parametrize("rows", range(10))
def test_a_killed_run_is_completed_by_the_next(
    people: list[User], settings: Settings, rows: int
) -> None:
    deque(islice(reencrypt_rows(), rows + 1))
    all_open(people)
    call_command("rotate_encryption")
    settings.FIELD_ENCRYPTION_KEYS = [NEW]
    all_open(people)


def test_a_missing_key_is_reported_with_its_row(people: list[User], settings: Settings) -> None:
    settings.FIELD_ENCRYPTION_KEYS = [NEW]
    with pytest.raises(CommandError, match=r"accounts\.LlmKey .* Add the old key"):
        call_command("rotate_encryption")
