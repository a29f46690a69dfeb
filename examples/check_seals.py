#!/usr/bin/env python3
"""Check the seals of a playbook offline, with the standard library only.

    curl -H "Authorization: Bearer $ACE_API_KEY" \
        https://ace.example.org/api/v1/playbooks/<id>/seals > seals.jsonl
    curl … https://ace.example.org/api/v1/playbooks/<id>/versions/7 > version7.json
    python check_seals.py seals.jsonl version7.json <serving_id from an agent's log> …

Exit code 0: each seal follows from its facts and the seal before, each version's text is the sealed
one, and each serving_id is witness of a seal. 1: something was rewritten, and what. 2: the files
cannot be read.
"""

import base64
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator


def canonical(facts: object) -> bytes:
    """The JSON that a seal is made of: sorted keys, no spaces, UTF-8."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def check_chain(lines: Iterable[str]) -> Iterator[str]:
    """What is wrong in an export, oldest version first."""
    previous, last = "", None
    for line in lines:
        row = json.loads(line)
        number = row["sealed"]["version"]
        if last is not None and number != last + 1:
            yield f"version {last + 1} is missing"
        if hashlib.sha256(previous.encode() + canonical(row["sealed"])).hexdigest() != row["seal"]:
            yield f"version {number}: its seal does not follow from the one before"
        previous, last = row["seal"], number


def check_witnesses(lines: Iterable[str], serving_ids: Iterable[str]) -> Iterator[str]:
    """Each serving_id whose version has another seal today than when it was read."""
    seals = {row["sealed"]["version"]: row["seal"] for row in map(json.loads, lines)}
    for token in serving_ids:
        number = int.from_bytes(base64.urlsafe_b64decode(token[16:])[:3], "big") % (1 << 22)
        if not seals.get(number, "").startswith(token[:16]):
            yield f"version {number} was rewritten: {token} was read from another one"


def check_texts(lines: Iterable[str], paths: Iterable[str]) -> Iterator[str]:
    """Each version, as the API answers it, whose text is not the sealed one."""
    sealed = {row["sealed"]["version"]: row["sealed"]["text"] for row in map(json.loads, lines)}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            version = json.load(file)
        if hashlib.sha256(version["content"].encode()).hexdigest() != sealed[version["version"]]:
            yield f"version {version['version']}: its text is not the sealed one"


def main(path: str, *more: str) -> int:
    texts = [one for one in more if one.endswith(".json")]
    serving_ids = [one for one in more if one not in texts]
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        problems = [
            *check_chain(lines),
            *check_texts(lines, texts),
            *check_witnesses(lines, serving_ids),
        ]
    except (OSError, ValueError, KeyError) as error:
        print(f"cannot be checked: {error}", file=sys.stderr)
        return 2
    print("\n".join(problems) or f"{len(lines)} seals and {len(serving_ids)} serving_ids agree")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 1 else print(__doc__) or 2)
