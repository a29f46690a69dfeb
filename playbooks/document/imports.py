"""Reading advice that people already have: ACE text, JSON, Markdown, rule files, cheatsheets. Pure.

Each format is read into entries; `_build` makes sections, ids and bullets of them, the same for
all. Only ACE text is strict.
"""

import io
import json
import re
import zipfile
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from core.strict_json import JsonFault, load_object
from playbooks.document.sections import (
    OTHERS,
    SLUG,
    TITLE_LIMIT,
    Section,
    find_heading,
    section_for,
)
from playbooks.document.text import (
    BULLET_LINE,
    CONTENT_LIMIT,
    HEADING_LIMIT,
    MAX_COUNTER,
    Bullet,
    Document,
    DocumentError,
    clean_content,
    clean_line,
    clean_title,
    is_bullet_id,
    make_id,
    normal_text,
    number_of,
    parse,
)

TEXT_FIELDS = ("content", "text", "playbook", "final_cheatsheet", "new_cheatsheet", "cheatsheet")
"""Fields of a JSON object that may hold the whole text of a playbook or of a cheatsheet."""
MAX_LINES = 10_000
"""Lines of a text: 100 KB of the shortest took the parser a second of CPU."""
MAX_MEMBER = 1_000_000
"""Bytes that are read of a zipped file."""
ZIP_FAULTS = (zipfile.BadZipFile, EOFError, zlib.error)
_HEAD = re.compile(r"\A---\n(.*?)^---[ \t]*$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^[ \t]*<!--.*?(?:-->|\Z)", re.MULTILINE | re.DOTALL)
_BOX = re.compile(r"\[[ xX]\]\s+")
_COUNT = re.compile(r"[\s*]{0,9}Count:[\s*]{0,9}(\d{1,9})")
_HEAD_FIELD = re.compile(r"^(name|description):[ \t]*(.*)", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """One piece of the given text. `skipped` says why it is no bullet; `section` is a title.

    `held` is the reason code of a bullet that waits for review. `line` counts from 1; in JSON it
    is 0.
    """

    line: int
    section: str
    content: str
    id: str = ""
    helpful: int = 0
    harmful: int = 0
    skipped: str = ""
    held: str = ""


@dataclass(frozen=True)
class Import:
    """What a text becomes: its format, the name and description inside it, and each line's fate."""

    format: str
    document: Document
    entries: tuple[Entry, ...]
    name: str = ""
    description: str = ""

    @property
    def bullet_count(self) -> int:
        return len(self.document.bullets)


def read_import(text: str) -> Import:
    """The import of a text in any known format. Raises DocumentError with the place."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if text.lstrip().startswith("{"):
        return _read_object(_load(text))
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        raise DocumentError(f"A text has at most {MAX_LINES:,} lines; a playbook holds fewer.")
    if any(BULLET_LINE.match(line.strip()) for line in lines) or _is_empty_playbook(lines):
        name = next((line.lstrip("# ") for line in lines if line.startswith("# ")), "")
        return _read_ace(text, name)
    made = _read_cheatsheet(text) if "<memory_item>" in text else _Markdown().read(text)
    if not made.document.bullets:
        raise DocumentError("No advice found. Write each piece of advice as a list item.")
    return made


def read_file(body: bytes) -> str:
    """The text of an uploaded file; of a zipped Agent Skill its SKILL.md. Raises DocumentError."""
    try:
        if body.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(body)) as folder:
                path = next(name for name in folder.namelist() if name.endswith("SKILL.md"))
                with folder.open(path) as file:
                    body = file.read(MAX_MEMBER)
        return body.decode("utf-8-sig")
    except (UnicodeDecodeError, StopIteration, RuntimeError, OSError, *ZIP_FAULTS):
        raise DocumentError("This file is neither UTF-8 text nor a zipped Agent Skill.") from None


def _is_empty_playbook(lines: Iterable[str]) -> bool:
    """Nothing but headings: the export of a playbook without bullets."""
    return all(line.startswith("#") for line in lines if line.strip())


def _read_ace(text: str, name: str) -> Import:
    document = parse(text)
    titles = {section.key: section.title for section in document.sections}
    entries = (
        Entry(0, titles[b.section], b.content, b.id, b.helpful, b.harmful) for b in document.bullets
    )
    return Import("ACE text", document, tuple(entries), name=clean_line(name, limit=120))


# --- JSON --------------------------------------------------------------------------------------


def _load(text: str) -> Mapping[str, Any]:
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > 1 and all(line.startswith("{") and line.endswith("}") for line in lines):
        text = lines[-1]  # JSON Lines: the last one is the newest
    try:
        return load_object(text)
    except JsonFault as fault:
        raise DocumentError(fault.message, line=fault.line) from None


def _read_object(found: Mapping[str, Any]) -> Import:
    """Our export, the object of a public ACE code base, or an object around a text."""
    named: dict[str, Any] = {
        name: clean_line(found[name], limit=limit)
        for name, limit in (("name", 120), ("description", 1000))
        if isinstance(found.get(name), str)
    }
    for name in TEXT_FIELDS:
        inner = found.get(name)
        if isinstance(inner, str) and inner.strip() and not inner.lstrip().startswith("{"):
            return replace(read_import(inner), **named)
        if isinstance(inner, dict):
            return replace(_read_object(inner), **named)
    bullets = found.get("bullets", found.get("skills"))
    if isinstance(bullets, dict | list):
        return replace(_build("ACE JSON", _object_entries(found, bullets)), **named)
    return replace(_read_own_json(found), **named)


def _object_entries(found: Mapping[str, Any], bullets: Any) -> list[Entry]:
    """The bullets of a public ACE code base: by id, or a list; sections by title."""
    pairs = bullets.items() if isinstance(bullets, dict) else enumerate(bullets)
    entries = []
    for key, value in pairs:
        given = value if isinstance(value, dict) else {"content": value}
        section = given.get("section")
        title = section if isinstance(section, str) and section.strip() else OTHERS.title
        entries.append(_entry_at({"id": key, **given}, title, f"bullets[{key}]"))
    titles = found["sections"] if isinstance(found.get("sections"), dict) else {}
    order = {title: place for place, title in enumerate(titles)}
    return sorted(entries, key=lambda entry: order.get(entry.section, len(order)))


def _read_own_json(found: Mapping[str, Any]) -> Import:
    """Our own export: its sections, empty ones too, and their bullets."""
    sections: list[Section] = []
    entries: list[Entry] = []
    for number, given in enumerate(_list_at(found, "sections", "the top")):
        place = f"sections[{number}]"
        sections.append(_section_at(given, sections, place))
        for index, bullet in enumerate(_list_at(given, "bullets", place)):
            entries.append(_entry_at(bullet, sections[-1].title, f"{place}.bullets[{index}]"))
    if len(sections) > HEADING_LIMIT:
        raise DocumentError(f"A playbook has at most {HEADING_LIMIT} sections.")
    return _build("JSON", entries, sections)


def _list_at(found: Any, name: str, place: str) -> list[Any]:
    value = found.get(name) if isinstance(found, dict) else None
    if not isinstance(value, list):
        raise DocumentError(f"At {place}: `{name}` must be a list, as in the JSON export.")
    return value


def _section_at(given: Any, taken: list[Section], place: str) -> Section:
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


def _entry_at(given: Any, title: str, place: str) -> Entry:
    """A bullet of a JSON object; counters are 0 where they are missing. Raises DocumentError."""
    content = given.get("content") if isinstance(given, dict) else None
    if not isinstance(content, str):
        raise DocumentError(f"At {place}: a bullet needs a `content`.")
    counts = [given.get(name, given.get(f"{name}_count", 0)) for name in ("helpful", "harmful")]
    if not all(type(count) is int and 0 <= count <= MAX_COUNTER for count in counts):
        raise DocumentError(f"At {place}: a counter is a whole number of at least 0.")
    return Entry(0, title, content, str(given.get("id", "")), *counts)


# --- Markdown ----------------------------------------------------------------------------------


@dataclass
class _Markdown:
    """Headings are sections; a list item or a paragraph is a bullet, with what belongs to it."""

    entries: list[Entry] = field(default_factory=list)
    name: str = ""
    description: str = ""
    section: str = ""
    line: int = 0
    text: list[str] = field(default_factory=list)
    depth: int = 0  # of open list items
    leads: list[tuple[int, int]] = field(default_factory=list)  # (depth, place among entries)
    is_intro: bool = False

    def read(self, text: str) -> Import:
        from markdown_it import MarkdownIt  # noqa: PLC0415 - 15 MB, for an import only

        blocks = MarkdownIt("commonmark").disable(["code", "reference", "html_block", "inline"])
        level = 0
        for token in blocks.parse(_COMMENT.sub(_blank_lines, _HEAD.sub(self._take_head, text))):
            if token.type == "inline" and token.map:
                self._take_text(token.content, token.map[0] + 1, level)
            elif token.type == "fence" and token.map:
                self._take_code(token.content, token.map[0] + 1)
            elif token.type in {"list_item_open", "list_item_close"}:
                self.close()
                self.depth += token.nesting
            level = int(token.tag[1]) if token.type == "heading_open" else 0
        made = _build("Markdown", self.entries)
        return replace(made, name=clean_line(self.name, limit=120), description=self.description)

    def _take_head(self, head: re.Match[str]) -> str:
        """The name and description of the front matter; its lines are blank from then on."""
        for name, value in _HEAD_FIELD.findall(head[1]):
            setattr(self, name, clean_line(_unquoted(value), limit=1000))
        return _blank_lines(head)

    def _take_text(self, text: str, number: int, level: int) -> None:
        """A heading of this level, a part of a list item, or (0, outside) a paragraph.

        In a paragraph a line after a full stop that begins with a capital is a rule of its own.
        """
        if level:
            self._open_section(text, level)
            return
        for place, said in enumerate(map(str.strip, text.split("\n")), start=number):
            if said.startswith("|"):
                self.close()
                self._skip(place, said, "Tables are not imported.")
                continue
            if not self.depth and self.text and self.text[-1][-1] in ".!" and said[0].isupper():
                self.close()
            self.line = self.line if self.text else place
            self.text.append(said if self.text else _BOX.sub("", said))
        if not self.depth:
            self.close()

    def _take_code(self, text: str, number: int) -> None:
        """A block of code belongs to the advice before it."""
        code = [f"`{line.strip()}`" for line in text.split("\n") if line.strip()]
        last = self.entries[-1] if self.entries and not self.text else None
        fits = last and not last.skipped and len(last.content) <= CONTENT_LIMIT
        if last and fits and last.section == self.section:
            self.entries[-1] = replace(last, content=" ".join([last.content, *code]))
            self.leads = [lead for lead in self.leads if lead[1] < len(self.entries) - 1]
            return
        self.line = self.line if self.text else number
        self.text += code
        if not self.depth:
            self.close()

    def _open_section(self, text: str, level: int) -> None:
        self.leads.clear()
        title = clean_line(text, limit=120)
        self.is_intro = level == 1 and not self.entries and not self.section
        if self.is_intro:
            self.name = self.name or title
        else:
            self.section = title

    def _skip(self, number: int, text: str, why: str) -> None:
        self.entries.append(Entry(number, self.section, clean_line(text, limit=200), skipped=why))

    def close(self) -> None:
        """End the open item or paragraph."""
        text, self.text = " ".join(self.text), []
        if not text:
            return
        is_intro, self.is_intro = self.is_intro, False
        about = clean_line(text, limit=1000)
        if is_intro and not self.depth and self.description in {"", about}:
            self.description = about
            self._skip(self.line, text, "It becomes the description.")
            return
        self.leads = [lead for lead in self.leads if lead[0] < self.depth]
        for _, place in self.leads:
            lead = self.entries[place]
            self.entries[place] = replace(lead, skipped="It begins each bullet below.")
        words = [self.entries[place].content for _, place in self.leads[-1:]]
        if text.endswith(":"):
            self.leads.append((self.depth, len(self.entries)))
        self.entries.append(Entry(self.line, self.section, " ".join([*words, text])))


def _blank_lines(match: re.Match[str]) -> str:
    """As many line ends as the match has, so that line numbers stay."""
    return "\n" * match[0].count("\n")


def _unquoted(value: str) -> str:
    """The text of a YAML scalar on one line; in double quotes it is a JSON string."""
    try:
        return str(json.loads(value)) if value.startswith('"') else value.strip("'")
    except ValueError:
        return value


# --- Dynamic Cheatsheet ------------------------------------------------------------------------


def _read_cheatsheet(text: str) -> Import:
    """Memory items: the description and its example are one bullet, `Count` is its counter."""
    before, *items = text.split("<memory_item>")
    line, section, entries = 1 + before.count("\n"), _last_heading(before, ""), []
    for item in items:
        body, _, after = item.partition("</memory_item>")
        count = _COUNT.match(after)
        about, example = (_inside(body, tag) for tag in ("description", "example"))
        content = " ".join(
            filter(None, (about or clean_line(body), example and f"Example: {example}"))
        )
        entries.append(Entry(line, section, content, helpful=int(count[1]) if count else 0))
        line, section = line + item.count("\n"), _last_heading(after, section)
    return _build("Dynamic Cheatsheet", entries)


def _inside(body: str, tag: str) -> str:
    return clean_line(body.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0])


def _last_heading(text: str, section: str) -> str:
    """The last line that is a Markdown heading, or words in capitals alone."""
    for line in text.split("\n"):
        said = line.strip().lstrip("# ").rstrip(":")
        if len(said) > 3 and (line.startswith("##") or said.isupper()):
            section = clean_line(said, limit=120)
    return section


# --- one builder for all -----------------------------------------------------------------------


def _build(label: str, entries: Iterable[Entry], sections: Iterable[Section] = ()) -> Import:
    """Sections, ids and bullets of the entries; what cannot be one is skipped with its reason.

    Ids that fit are kept; the others are numbered after the highest.
    """
    entries, headings = list(entries), list(sections)
    highest = max((number_of(e.id) for e in entries if is_bullet_id(e.id)), default=0)
    known = {section.title: section for section in headings}
    bullets: dict[int, Bullet] = {}
    texts: set[str] = set()
    done: list[Entry] = []
    for given in entries:
        entry = _cleaned(given, texts)
        if not entry.skipped:
            section = known.get(entry.section) or _find_or_add(headings, entry.section)
            known[entry.section] = section
            fits = is_bullet_id(entry.id) and number_of(entry.id) not in bullets
            highest += not fits
            name = entry.id if fits else make_id(section, highest)
            texts.add(normal_text(entry.content))
            entry = replace(entry, id=name, section=section.title)
            counters = entry.helpful, entry.harmful
            bullets[number_of(name)] = Bullet(name, section.key, entry.content, *counters)
        done.append(entry)
    return Import(label, Document.of(headings, bullets.values()), tuple(done))


def _cleaned(entry: Entry, texts: Collection[str]) -> Entry:
    """The entry with the content of a bullet, or the reason why it cannot be one."""
    if entry.skipped:
        return entry
    try:
        content = clean_content(entry.content)
    except DocumentError as error:
        content = clean_line(entry.content, limit=200)
        return replace(entry, content=content, skipped=error.message)
    same = "The same advice is already there." if normal_text(content) in texts else ""
    return replace(entry, content=content, skipped=same)


def _find_or_add(headings: list[Section], title: str) -> Section:
    """The section with this title, made if need be; beyond the limit OTHERS."""
    plain = clean_line(title, limit=TITLE_LIMIT).lstrip("# ")
    plain = OTHERS.title if len(headings) >= HEADING_LIMIT - 1 or not plain else plain
    section = find_heading(headings, plain)
    if section is None:
        section = section_for(plain, headings)
        headings.append(section)
    return section
