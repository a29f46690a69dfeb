"""The list of variables in docs/CONFIGURATION.md, read from .env.example."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

BEGIN = "<!-- Written by `manage.py settings_docs` from .env.example: change it there. -->\n"
END = "<!-- End of what `manage.py settings_docs` writes. -->\n"
SECTION = re.compile(r"^# --- (.+?) -+$")
VARIABLE = re.compile(r"^#?([A-Z_]+=.*)$")


@dataclass
class Row:
    """Variables that one comment explains."""

    variables: list[str] = field(default_factory=list)
    comment: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        names = ", ".join(f"`{variable}`" for variable in self.variables)
        return f"- {names}: {' '.join(self.comment)}"


def settings_table(example: str) -> str:
    """One list for each section of the file; a comment belongs to the variables after it."""
    lines: list[str] = []
    for title, rows in _sections(example.splitlines()):
        lines += [f"### {title}", "", *map(str, rows), ""]
    return "\n".join(lines)


def _sections(lines: list[str]) -> Iterator[tuple[str, list[Row]]]:
    title, rows = "", [Row()]
    for line in lines:
        section, variable = SECTION.match(line), VARIABLE.match(line)
        if section:
            yield from _filled(title, rows)
            title, rows = section[1], [Row()]
        elif variable:
            rows[-1].variables.append(variable[1])
        elif line.startswith("#"):
            if rows[-1].variables:
                rows.append(Row())
            rows[-1].comment.append(line.removeprefix("#").strip())
        elif rows[-1].variables:
            rows.append(Row())
    yield from _filled(title, rows)


def _filled(title: str, rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    found = [row for row in rows if row.variables]
    if title and found:
        yield title, found


def replace_settings_table(document: str, example: str) -> str:
    """The document with its list regenerated. Raises ValueError without the two markers."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the two comments around the list are missing")
    return f"{before}{BEGIN}\n{settings_table(example)}\n{END}{after}"
