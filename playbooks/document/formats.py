"""Export formats of a playbook, and import from two of them. Pure."""

import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core.strict_json import JsonFault, load_object
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
    render,
)

ID_LIMIT = 40
JSON_FORMAT = "ace-playbook/1"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest time a zip knows: the same text gives the same bytes


@dataclass(frozen=True)
class Export:
    """A document with the name, description and version that go with it."""

    document: Document
    name: str
    description: str
    version: int


@dataclass(frozen=True)
class Format:
    """`file` is the file's name after a dot, else the whole of it; `help` is what it is for."""

    label: str
    help: str
    file: str
    content_type: str
    write: Callable[[Export], bytes]


@dataclass(frozen=True)
class File:
    name: str
    content_type: str
    body: bytes


def write_file(export: Export, format_name: str) -> File:
    """The export as a file; KeyError for an unknown format."""
    chosen = FORMATS[format_name]
    stem = (slugify(export.name) or "playbook") if chosen.file.startswith(".") else ""
    return File(f"{stem}{chosen.file}", chosen.content_type, chosen.write(export))


def slugify(name: str) -> str:
    """The name in small letters and digits with single dashes, at most 64 characters."""
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:64].strip("-")


def read_document(text: str) -> Document:
    """The document of an ACE text or our JSON export. Raises DocumentError with the place."""
    if not text.lstrip("\ufeff \t\r\n").startswith("{"):
        return parse(text)
    try:
        found = load_object(text.removeprefix("\ufeff"))
    except JsonFault as fault:
        raise DocumentError(fault.message, line=fault.line) from None
    if isinstance(found.get("text"), str):
        return parse(found["text"])
    return _from_json(found)


# --- writing -----------------------------------------------------------------------------------


def _json(export: Export) -> bytes:
    found = {
        "format": JSON_FORMAT,
        "name": export.name,
        "description": export.description,
        "version": export.version,
        "sections": [_section_json(export.document, s) for s in export.document.sections],
    }
    return (json.dumps(found, ensure_ascii=False, indent=2) + "\n").encode()


def _section_json(document: Document, section: Section) -> dict[str, Any]:
    bullets = [b for b in document.bullets if b.section == section.key]
    fields = ("id", "content", "helpful", "harmful")
    return {
        "title": section.title,
        "slug": section.slug,
        "aliases": list(section.aliases),
        "bullets": [{name: getattr(bullet, name) for name in fields} for bullet in bullets],
    }


def _markdown(export: Export) -> str:
    """Headings and lists, without ids and counters, for other programs."""
    lines = [f"# {export.name}", ""]
    lines += [export.description, ""] if export.description else []
    for section in export.document.sections:
        bullets = [b for b in export.document.bullets if b.section == section.key]
        if bullets:
            lines += [f"## {section.title}", "", *(f"- {b.content}" for b in bullets), ""]
    return "\n".join(lines)


def _skill_folder(export: Export) -> bytes:
    """A zip with one folder, named like the skill in its SKILL.md, as Agent Skills require."""
    name = slugify(export.name) or "playbook"
    about = export.description or f"Advice on {export.name}, learned from outcomes."
    head = [
        "---",
        f"name: {name}",
        # A JSON string is a YAML string.
        f"description: {json.dumps(about[:1024], ensure_ascii=False)}",
        "metadata:",
        f'  version: "{export.version}"',
        "---",
        "",
    ]
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as folder:
        member = zipfile.ZipInfo(f"{name}/SKILL.md", EPOCH)
        member.compress_type = zipfile.ZIP_DEFLATED
        member.external_attr = 0o644 << 16
        folder.writestr(member, "\n".join(head) + "\n" + _markdown(export))
    return body.getvalue()


MARKDOWN = "text/markdown; charset=utf-8"
FORMATS: Mapping[str, Format] = {
    "ace": Format(
        "ACE text",
        "Everything, counters included; can be imported again.",
        ".ace.md",
        "text/plain; charset=utf-8",
        lambda export: render(export.document).encode(),
    ),
    "json": Format(
        "JSON",
        "The same for programs; can be imported again.",
        ".json",
        "application/json",
        _json,
    ),
    "agents": Format(
        "AGENTS.md",
        "Headings and lists for agents that read a file.",
        "AGENTS.md",
        MARKDOWN,
        lambda export: _markdown(export).encode(),
    ),
    "skill": Format(
        "Agent Skill",
        "A zip with a folder and its SKILL.md.",
        ".zip",
        "application/zip",
        _skill_folder,
    ),
}


# --- reading JSON ------------------------------------------------------------------------------


def _from_json(found: Mapping[str, Any]) -> Document:
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
    counters = [values.get(field, 0) for field in ("helpful", "harmful")]
    if not all(type(count) is int and 0 <= count <= MAX_COUNTER for count in counters):
        raise DocumentError(f"At {place}: a counter is a whole number of at least 0.")
    try:
        text = clean_content(content)
    except DocumentError as error:
        raise DocumentError(f"At {place}: {error.message}") from None
    return ace_line(
        Bullet(clean_line(name, limit=ID_LIMIT), section.key, text, counters[0], counters[1])
    )
