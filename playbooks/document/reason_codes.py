"""The sentences of reason_codes.toml: why an operation changed nothing or was held."""

import tomllib
from pathlib import Path

HELD_FULL, HELD_REWRITE = "held_full", "held_rewrite"
_TEXTS = Path(__file__).with_name("reason_codes.toml").read_text(encoding="utf-8")
REASONS: dict[str, str] = tomllib.loads(_TEXTS)


def reason_text(code: str) -> str:
    """The sentence for a reason code; an unknown code as words."""
    return REASONS.get(code) or code.replace("_", " ").capitalize()
