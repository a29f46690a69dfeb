"""Export formats of a playbook; imports.py reads each of them back. Pure."""

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from playbooks.document.sections import Section
from playbooks.document.text import Bullet, Document, number_of, render

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
    write: Callable[[Export], bytes | str]


@dataclass(frozen=True)
class File:
    name: str
    content_type: str
    body: bytes


def write_file(export: Export, format_name: str) -> File:
    """The export as a file; KeyError for an unknown format."""
    chosen = FORMATS[format_name]
    stem = (slugify(export.name) or "playbook") if chosen.file.startswith(".") else ""
    body = chosen.write(export)
    body = body if isinstance(body, bytes) else body.encode()
    return File(f"{stem}{chosen.file}", chosen.content_type, body)


def slugify(name: str) -> str:
    """The name in small letters and digits with single dashes, at most 64 characters."""
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:64].strip("-")


def _dump(export: Export, **found: Any) -> str:
    named = {"name": export.name, "description": export.description, **found}
    return json.dumps(named, ensure_ascii=False, indent=2) + "\n"


def _sections(export: Export) -> Iterator[tuple[Section, list[Bullet]]]:
    for section in export.document.sections:
        yield section, [b for b in export.document.bullets if b.section == section.key]


def _ace(export: Export) -> str:
    return render(export.document)


def _json(export: Export) -> str:
    fields = ("id", "content", "helpful", "harmful")
    sections = [
        {
            "title": section.title,
            "slug": section.slug,
            "aliases": list(section.aliases),
            "bullets": [{name: getattr(bullet, name) for name in fields} for bullet in bullets],
        }
        for section, bullets in _sections(export)
    ]
    return _dump(export, format=JSON_FORMAT, version=export.version, sections=sections)


def _ace_json(export: Export) -> str:
    """As the public ACE code bases save a playbook: bullets by id, ids by section."""
    bullets = export.document.bullets
    titles = {section.key: section.title for section in export.document.sections}
    return _dump(
        export,
        bullets={b.id: {**asdict(b), "section": titles[b.section], "neutral": 0} for b in bullets},
        sections={s.title: [b.id for b in found] for s, found in _sections(export)},
        next_id=max((number_of(b.id) for b in bullets), default=0) + 1,
    )


def _cheatsheet(export: Export) -> str:
    """As Dynamic Cheatsheet keeps its memory; `Count` is how often an item helped."""
    lines = []
    for section, bullets in _sections(export):
        lines += [f"## {section.title}\n"] if bullets else []
        for bullet in bullets:
            lines += ["<memory_item>", f"<description>\n{bullet.content}\n</description>"]
            lines += ["</memory_item>", f"** Count: {bullet.helpful}\n"]
    return _dump(export, final_cheatsheet="\n".join(lines))


def _markdown(export: Export) -> str:
    """Headings and lists, without ids and counters, for other programs."""
    lines = [f"# {export.name}", ""]
    lines += [export.description, ""] if export.description else []
    for section, bullets in _sections(export):
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


JSON, MARKDOWN = "application/json", "text/markdown; charset=utf-8"
PLAIN = "text/plain; charset=utf-8"
AGENTS_HELP = "Headings and lists, also for CLAUDE.md and .cursorrules; without counters."
SHEET_HELP = "JSON with memory items; helpful votes become their counts."
ACE_JSON_HELP = "For the public ACE code bases, counters included."
SKILL_HELP = "A zip with a folder and its SKILL.md."
FORMATS: Mapping[str, Format] = {
    "ace": Format("ACE text", "Everything, counters included.", ".ace.md", PLAIN, _ace),
    "json": Format("JSON", "The same for programs.", ".json", JSON, _json),
    "agents": Format("AGENTS.md", AGENTS_HELP, "AGENTS.md", MARKDOWN, _markdown),
    "skill": Format("Agent Skill", SKILL_HELP, ".zip", "application/zip", _skill_folder),
    "ace_json": Format("ACE JSON", ACE_JSON_HELP, ".ace.json", JSON, _ace_json),
    "cheatsheet": Format("Dynamic Cheatsheet", SHEET_HELP, ".cheatsheet.json", JSON, _cheatsheet),
}
