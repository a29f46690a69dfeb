"""Unicode normalisation of untrusted text, and what no text may contain. Pure.

`unicodedata.normalize` sorts a run of combining marks by insertion, in C, while it holds the
interpreter's lock: 100,000 marks stop a whole process for 16 s. So it is called here only.
"""

import re
import unicodedata
from functools import cache
from typing import Literal

MAX_MARKS = 30
"""Combining marks in a row, as in Unicode's stream-safe text format (UAX #15); no language needs
more than a handful."""
MAX_CHARS = 20_000
"""Characters that are normalised at once; one can become eighteen."""
# Their decompositions begin with a mark, though they do not count as marks themselves.
_HIDDEN_MARKS = "\u0f73\u0f75\u0f81\uff9e\uff9f"


def normalize(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """The Unicode normal form of the first MAX_CHARS characters, marks trimmed; linear time."""
    return unicodedata.normalize(form, trim_marks(text[:MAX_CHARS]))  # noqa: TID251 - here only


def trim_marks(text: str) -> str:
    """The text without the marks after the thirtieth of a run."""
    if not _may_have_long_run(text):
        return text
    return _long_run().sub(lambda run: run[0][:MAX_MARKS], text)


def find_fault(text: str) -> str:
    """Why no field takes this text, as a sentence; empty for a text that is fine."""
    if "\x00" in text:
        return "A text contains a NUL character. Remove it."
    try:
        text.encode()
    except UnicodeEncodeError:
        return "A text contains a lone surrogate, which is not valid Unicode. Remove it."
    if _may_have_long_run(text) and _long_run().search(text):
        return f"A text has more than {MAX_MARKS} combining marks in a row. Remove some."
    return ""


def _may_have_long_run(text: str) -> bool:
    """False when every 31st character shows that there is none: of 1 MB it looks at 34 KB."""
    return not text.isascii() and bool(_mark().search(text[:: MAX_MARKS + 1]))


@cache
def _long_run() -> re.Pattern[str]:
    mark = _mark().pattern
    return re.compile(rf"{mark}{mark}{{{MAX_MARKS},}}")  # `re` is quick to find a single first mark


@cache
def _mark() -> re.Pattern[str]:
    """Built at the first use: asking for every character takes 10 ms. No mark is above U+1EFFF."""
    marks = (char for char in map(chr, range(0x300, 0x1F000)) if unicodedata.combining(char))
    return re.compile(f"[{''.join(marks)}{_HIDDEN_MARKS}]")
