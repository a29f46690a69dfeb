"""Our own JSON of a playbook, read back as it was written. Pure."""

from collections.abc import Mapping
from typing import Any

from playbooks.document.sections import SLUG, TITLE_LIMIT, Section, section_for
from playbooks.document.text import (
    MAX_COUNTER,
    Bullet,
    Document,
    DocumentError,
    ace_line,
    clean_content,
    clean_line,
    clean_title,
    parse,
)

ID_LIMIT = 40


def document_from_json(found: Mapping[str, Any]) -> Document:
    """Parsed by way of ACE text, so that both formats obey the same rules."""
    sections: list[Section] = []
    lines: list[str] = []
    places: list[str] = []
    for number, given in enumerate(_list(found, "sections", "the top")):
        place = f"sections[{number}]"
        section = _section(given, sections, place)
        sections.append(section)
        lines.append(f"## {section.title}")
        places.append(place)
        for index, bullet in enumerate(_list(given, "bullets", place)):
            places.append(f"{place}.bullets[{index}]")
            lines.append(_line(bullet, section, places[-1]))
    try:
        return parse("\n".join(lines), sections=sections)
    except DocumentError as error:
        where = places[error.line - 1] if error.line else "sections"
        raise DocumentError(f"At {where}: {error.message}") from None


def _list(found: Any, name: str, place: str) -> list[Any]:
    value = found.get(name) if isinstance(found, dict) else None
    if not isinstance(value, list):
        raise DocumentError(f"At {place}: `{name}` must be a list, as in the JSON export.")
    return value


def _section(given: Any, taken: list[Section], place: str) -> Section:
    title = given.get("title") if isinstance(given, dict) else None
    if not isinstance(title, str):
        raise DocumentError(f"At {place}: a section needs a `title`.")
    try:
        section = section_for(clean_title(title), taken)
    except DocumentError as error:
        raise DocumentError(f"At {place}: {error.message}") from None
    if section.key in {one.key for one in taken}:
        raise DocumentError(f"At {place}: the section “{section.title}” already exists.")
    slug, aliases = given.get("slug"), given.get("aliases")
    if isinstance(slug, str) and SLUG.fullmatch(slug) and slug not in {s.slug for s in taken}:
        section = Section(section.key, section.title, slug, section.aliases)
    if isinstance(aliases, list) and all(isinstance(alias, str) for alias in aliases):
        names = (clean_line(alias, limit=TITLE_LIMIT) for alias in aliases[:20])
        section = Section(section.key, section.title, section.slug, tuple(filter(None, names)))
    return section


def _line(given: Any, section: Section, place: str) -> str:
    """The bullet as a line of ACE text."""
    values = given if isinstance(given, dict) else {}
    name, content = values.get("id"), values.get("content")
    if not isinstance(name, str) or not isinstance(content, str):
        raise DocumentError(f"At {place}: a bullet needs an `id` and a `content`.")
    counters = read_counters(values, place)
    try:
        text = clean_content(content)
    except DocumentError as error:
        raise DocumentError(f"At {place}: {error.message}") from None
    return ace_line(
        Bullet(clean_line(name, limit=ID_LIMIT), section.key, text, counters[0], counters[1])
    )


def read_counters(given: Mapping[str, Any], place: str) -> tuple[int, int]:
    """`helpful` and `harmful`, 0 where they are missing. Raises DocumentError."""
    found = [given.get(name, given.get(f"{name}_count", 0)) for name in ("helpful", "harmful")]
    if not all(type(count) is int and 0 <= count <= MAX_COUNTER for count in found):
        raise DocumentError(f"At {place}: a counter is a whole number of at least 0.")
    return found[0], found[1]
