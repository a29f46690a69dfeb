"""The format of an API key."""

import string

import pytest

from accounts import keys


def test_a_minted_key_has_the_documented_shape() -> None:
    minted = keys.mint()
    assert keys.KEY_PATTERN.fullmatch(minted.token)
    assert len(minted.token) == len("ace_live_") + 12 + 1 + 43 + 6
    assert minted.token.startswith(f"ace_live_{minted.prefix}_")


def test_a_minted_key_parses_to_its_prefix() -> None:
    minted = keys.mint()
    assert keys.parse(minted.token) == minted.prefix


def test_two_keys_differ_in_id_and_secret() -> None:
    first, second = keys.mint(), keys.mint()
    assert first.prefix != second.prefix
    assert first.digest != second.digest


@pytest.mark.parametrize("place", [9, 20, 30, 64, 70])
def test_one_changed_character_fails_the_checksum(place: int) -> None:
    token = keys.mint().token
    other = next(c for c in string.ascii_letters if c != token[place])
    changed = token[:place] + other + token[place + 1 :]
    assert keys.parse(changed) is None


@pytest.mark.parametrize("token", ["", "ace_live_", "sk-123", "ace_live_é" * 8, "a" * 71])
def test_what_is_no_key_does_not_parse(token: str) -> None:
    assert keys.parse(token) is None


def test_only_the_token_matches_its_digest() -> None:
    minted = keys.mint()
    assert keys.matches(minted.token, minted.digest)
    assert not keys.matches(keys.mint().token, minted.digest)


def test_a_key_of_the_operators_own_making_is_found_by_its_digest() -> None:
    token = "my-own-key-0123456789abcdef"
    assert keys.locate(token) == keys.digest(token)[:12]
