"""CSV cells are never run as formulas."""

import csv
import io

import pytest

from core.csv import escape_formula, write_csv


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_what_looks_like_a_formula_gets_an_apostrophe(start: str) -> None:
    assert escape_formula(f"{start}cmd|' /C calc'!A0") == f"'{start}cmd|' /C calc'!A0"


def test_everything_else_stays_as_it_is() -> None:
    assert [escape_formula(value) for value in ("a=b", 12, None)] == ["a=b", "12", ""]


def test_quotes_commas_and_line_breaks_round_trip() -> None:
    cells = ['say "hi"', "a,b", "two\nlines"]
    assert list(csv.reader(io.StringIO(write_csv(["x"], [cells]))))[1] == cells
