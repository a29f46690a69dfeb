"""Parses numbers as people and models write them: `$1,234.50`, `15 %`, `“2.0”`, `−3`, `(120)`."""

import re
from decimal import Decimal, InvalidOperation

from core.text import normalize

_LONGEST = 60
_SIGNS = "$€£¥₹\"'“”„‘’`*"
_NUMBER = re.compile(
    r"[-+]?\s?(?:\d{1,3}(?:(?P<comma>[,_\s])\d{3}(?:(?P=comma)\d{3})*)|\d+)?"
    r"(?:\.\d+)?(?:e[-+]?\d{1,3})?\s?%?",
    re.IGNORECASE,
)


def same_number(given: str, wanted: str, *, decimals: int) -> bool:
    """Whether both texts are one number to that many places; a percent sign may mean /100."""
    target = read_number(wanted)
    if target is None:
        return False
    half = Decimal(5).scaleb(-decimals - 1)
    return any(abs(one - other) <= half for one in possible_values(given) for other in [target])


def possible_values(text: str) -> list[Decimal]:
    """The possible values of a text: one number, two with a percent sign, or none."""
    number = read_number(text)
    if number is None:
        return []
    return [number, number / 100] if "%" in normalize("NFKC", text) else [number]


def read_number(text: str) -> Decimal | None:
    """The number that the whole text is; None when it is anything else, as the list `1, 2` is."""
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    folded = normalize("NFKC", text).replace("−", "-")
    bare = folded.translate({ord(sign): None for sign in _SIGNS}).strip().rstrip(".")
    if bare.startswith("(") and bare.endswith(")"):
        bare = f"-{bare[1:-1].strip()}"
    bare = re.sub(r"\s+", " ", bare)
    if not bare or not _NUMBER.fullmatch(bare):
        return None
    try:
        number = Decimal(re.sub(r"[,_\s%]", "", bare))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
