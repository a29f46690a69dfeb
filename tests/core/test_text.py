"""Normalisation of untrusted text costs little, whatever the text."""

import sys
import time
import unicodedata

import pytest

from core.strict_json import JsonFault, load_object
from core.text import MAX_MARKS, find_fault, normalize, trim_marks

MARKS = "a" + "\u0315" * 80_000 + "\u0300" * 80_000


@pytest.mark.parametrize("form", ["NFC", "NFKC", "NFKD"])
@pytest.mark.parametrize("unit", ["\u0315\u0300", "\u0f73", "\uff9e\u0300", "\ufdfa", "e\u0301"])
def test_no_text_is_slow_to_normalise(form: str, unit: str) -> None:
    start = time.thread_time()
    normalize(form, MARKS + unit * 100_000)  # type: ignore[arg-type]  # a form
    normalize(form, unit * 100_000)  # type: ignore[arg-type]  # a form
    assert time.thread_time() - start < 0.25


def test_every_character_that_decomposes_to_a_mark_counts_as_one() -> None:
    for code in range(0x300, sys.maxunicode + 1):
        char = chr(code)
        if unicodedata.combining(unicodedata.normalize("NFKD", char)[0]):
            assert trim_marks(char * 40) == char * MAX_MARKS, hex(code)


@pytest.mark.parametrize("text", ["", "ab", "é", "a" + "\u0301" * MAX_MARKS, "नमस्ते", "カ\uff9e"])
def test_other_text_is_as_it_was(text: str) -> None:
    assert find_fault(text) == ""
    assert normalize("NFC", text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a\0", "NUL"),
        ("a\ud800", "surrogate"),
        ("b" * 50 + "a" + "\u0301" * 31, "combining marks"),
        (MARKS, "combining marks"),
    ],
)
def test_a_fault_is_named(text: str, fault: str) -> None:
    assert fault in find_fault(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"a": ' + "9" * 5000 + "}", "a number is too large"),
        ('{"a": "\\ud800"}', "surrogate"),
        ('{"a": "e' + "\u0301" * 31 + '"}', "combining marks"),
        ('{"a": [' + "1," * 60_000 + "1]}", "more than 50,000 values"),
    ],
)
def test_json_with_a_fault_is_refused(text: str, fault: str) -> None:
    with pytest.raises(JsonFault, match=fault):
        load_object(text)
