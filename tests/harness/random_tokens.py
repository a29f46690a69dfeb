"""How many random tokens a server takes: `python -m tests.harness.random_tokens 1000000`.

A token of the right shape whose checksum fits (one in 4 thousand million does) is looked up among
1,000 real keys, by id and then by digest, as the server does.
"""

import secrets
import sys
import time

from accounts.keys.key_format import (
    ALPHABET,
    CHECK_LENGTH,
    ID_LENGTH,
    SECRET_LENGTH,
    matches,
    mint,
    parse,
)

TAIL = SECRET_LENGTH + CHECK_LENGTH


def accepted(count: int) -> int:
    """How many of so many random tokens are taken for a key."""
    keys = {key.prefix: key.digest for key in (mint() for _ in range(1000))}
    return sum(_is_taken(token, keys) for token in _tokens(count))


def _tokens(count: int) -> "list[str]":
    return [f"ace_live_{_random(ID_LENGTH)}_{_random(TAIL)}" for _ in range(count)]


def _random(length: int) -> str:
    return "".join(ALPHABET[byte % len(ALPHABET)] for byte in secrets.token_bytes(length))


def _is_taken(token: str, keys: dict[str, str]) -> bool:
    prefix = parse(token)
    return prefix is not None and matches(token, keys.get(prefix, ""))


if __name__ == "__main__":
    began, wanted = time.perf_counter(), int(sys.argv[1])
    taken = sum(accepted(min(100_000, wanted - done)) for done in range(0, wanted, 100_000))
    print(f"{wanted} random tokens: {taken} accepted, in {time.perf_counter() - began:.0f} s")
    sys.exit(int(taken > 0))
