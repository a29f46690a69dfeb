"""CSV whose cells a spreadsheet never runs as formulas. Pure."""

import csv
import io
from collections.abc import Iterable, Sequence

FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")


def escape_formula(value: object) -> str:
    """The value as text, with an apostrophe before what a spreadsheet would run as a formula."""
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(FORMULA_PREFIXES) else text


def write_csv(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The table in the format of RFC 4180, with formulas escaped."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(heads)
    writer.writerows([escape_formula(value) for value in row] for row in rows)
    return out.getvalue()
