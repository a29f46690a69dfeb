"""The format of an API key."""

import string

import pytest

from accounts.keys import key_format
from core.security.redaction import API_KEY_PATTERN


def test_a_minted_key_has_the_documented_format() -> None:
    minted = key_format.mint()
    assert API_KEY_PATTERN.fullmatch(minted.token)
    assert len(minted.token) == len("ace_live_") + 12 + 1 + 43 + 6
    assert minted.token.startswith(f"ace_live_{minted.prefix}_")


def test_a_minted_key_parses_to_its_prefix() -> None:
    minted = key_format.mint()
    assert key_format.parse(minted.token) == minted.prefix


def test_two_keys_differ_in_id_and_secret() -> None:
    first, second = key_format.mint(), key_format.mint()
    assert first.prefix != second.prefix
    assert first.digest != second.digest


@pytest.mark.parametrize("place", [9, 20, 30, 64, 70])
def test_one_changed_character_fails_the_checksum(place: int) -> None:
    token = key_format.mint().token
    other = next(c for c in string.ascii_letters if c != token[place])
    changed = token[:place] + other + token[place + 1 :]
    assert key_format.parse(changed) is None


@pytest.mark.parametrize("token", ["", "ace_live_", "sk-123", "ace_live_é" * 8, "a" * 71])
def test_malformed_keys_do_not_parse(token: str) -> None:
    assert key_format.parse(token) is None


def test_only_the_token_matches_its_digest() -> None:
    minted = key_format.mint()
    assert key_format.matches(minted.token, minted.digest)
    assert not key_format.matches(key_format.mint().token, minted.digest)


def test_an_operator_chosen_key_is_found_by_its_digest() -> None:
    token = "my-own-key-0123456789abcdef"
    assert key_format.locate(token) == key_format.digest(token)[:12]
