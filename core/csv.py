"""CSV that a spreadsheet shows and never runs. Pure."""

import csv
import io
from collections.abc import Iterable, Sequence

FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")


def escape_formula(value: object) -> str:
    """The value as text; an apostrophe in front of what a spreadsheet would take for a formula."""
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(FORMULA_PREFIXES) else text


def write_csv(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The table as RFC 4180 has it, with every cell safe."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(heads)
    writer.writerows([escape_formula(value) for value in row] for row in rows)
    return out.getvalue()
