"""The text of a playbook: two renderings of one document, and the way back."""

import hashlib
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from core.text import MAX_CHARS, normalize
from playbooks.document.sections import OTHERS, TITLE_LIMIT, Section, find_heading, section_for

CONTENT_LIMIT = 2_000
HEADING_LIMIT = 60
MAX_NESTING = 5
"""Forged lines inside forged lines that are taken out of a bullet."""
COUNTER_DIGITS = 9
MAX_COUNTER = 10**COUNTER_DIGITS - 1
# The pattern of the public implementation: every line that we write has to match it.
BULLET_LINE = re.compile(r"\[([^\]]+)\]\s*helpful=(\d+)\s*harmful=(\d+)\s*::\s*(.*)")
_ID = r"[a-z]{2,8}-(?:[0-9]{5}|[1-9][0-9]{5,6})"
BULLET_ID = re.compile(rf"(?<![\w-]){_ID}(?!\w)")
_COUNTERS = re.compile(rf"^(\[{_ID}\] )helpful=\d+ harmful=\d+ :: ", re.MULTILINE)
_EMPTY_SECTION = re.compile(r"^## [^\n]*\n(?:\n|\Z)", re.MULTILINE)
_FORGED = re.compile(r"\[[^\[\]]*\]\s*helpful=\d+\s*harmful=\d+\s*::", re.IGNORECASE)


class DocumentError(ValueError):
    """The text is not a playbook; `line` counts from 1, None when it is not about a line."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message if line is None else f"Line {line}: {message}")
        self.message = message
        self.line = line


@dataclass(frozen=True)
class Bullet:
    """One piece of advice: `section` is a section's key, the counters are votes."""

    id: str
    section: str
    content: str
    helpful: int = 0
    harmful: int = 0


@dataclass(frozen=True)
class Document:
    """Sections in order and active bullets in rendering order: by section, then by number."""

    sections: tuple[Section, ...]
    bullets: tuple[Bullet, ...]

    @classmethod
    def of(cls, sections: Sequence[Section], bullets: Iterable[Bullet]) -> "Document":
        """A document of bullets in any order; KeyError for a section that is not there."""
        place = {section.key: index for index, section in enumerate(sections)}
        ordered = sorted(bullets, key=lambda b: (place[b.section], number_of(b.id)))
        return cls(tuple(sections), tuple(ordered))

    def by_id(self) -> dict[str, Bullet]:
        return {bullet.id: bullet for bullet in self.bullets}


def number_of(bullet_id: str) -> int:
    """The number in `str-00042`: 42."""
    return int(bullet_id.rpartition("-")[2])


def is_bullet_id(text: str) -> bool:
    return re.fullmatch(_ID, text) is not None


def make_id(section: Section, number: int) -> str:
    return f"{section.slug}-{number:05d}"


def find_ids(text: str) -> list[str]:
    """Every bullet id in the text, each once, in order; not checked against any playbook."""
    return list(dict.fromkeys(BULLET_ID.findall(text)))


def clean_line(text: str, *, limit: int | None = None) -> str:
    """One printable line in NFC: whitespace folded, control and zero-width characters gone.

    With a `limit` in characters the rest is cut off. At most ten times as many are looked at, and
    MAX_CHARS.
    """
    text = text[: MAX_CHARS if limit is None else min(10 * limit, MAX_CHARS)]
    if not text.isprintable():
        # Cc, Cf (zero-width, bidi), Cs (lone surrogates); whitespace among them becomes a space.
        text = "".join(
            char if char.isspace() or unicodedata.category(char) not in {"Cc", "Cf", "Cs"} else ""
            for char in text
        )
    text = " ".join(normalize("NFC", text).split())
    return text if limit is None else text[:limit].rstrip()


def clean_content(text: str) -> str:
    """One safe line of 1-2,000 characters that cannot pass for layout; else DocumentError."""
    if len(text) > 10 * CONTENT_LIMIT:
        raise DocumentError(f"A bullet has at most {CONTENT_LIMIT:,} characters; shorten it.")
    line = clean_line(text)
    for _ in range(MAX_NESTING):  # taking one forgery out can complete the next
        before = line
        line = clean_line(_FORGED.sub(" ", line).lstrip("# "))
        if line == before:
            break
    else:
        raise DocumentError("A bullet cannot contain the lines of other bullets.")
    if not line:
        raise DocumentError("A bullet needs a text; write one sentence of advice.")
    if len(line) > CONTENT_LIMIT:
        raise DocumentError(f"A bullet has at most {CONTENT_LIMIT:,} characters; shorten it.")
    return line


def clean_title(text: str) -> str:
    """A section's title on one line, 1-120 characters; else DocumentError."""
    title = clean_line(clean_line(text).lstrip("# "))
    if not 0 < len(title) <= TITLE_LIMIT:
        raise DocumentError(f"A section needs a title of 1 to {TITLE_LIMIT} characters.")
    return title


def normal_text(content: str) -> str:
    """The text with case, spacing and the last full stop folded, to find exact duplicates.

    Options keep their case: `git branch -d` and `git branch -D` are two pieces of advice.
    """
    words = normalize("NFKC", content).split()
    folded = " ".join(word if word.startswith("-") else word.casefold() for word in words)
    return folded.rstrip(" .;!") or folded


def content_hash(text: str) -> str:
    """SHA-256 of the normalised text: equal for exact duplicates."""
    return hashlib.sha256(normal_text(text).encode()).hexdigest()


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def estimate_tokens(text: str) -> int:
    """Tokens by the rule of thumb of four characters each, rounded up: no download, no model."""
    return (len(text) + 3) // 4


def ace_line(bullet: Bullet) -> str:
    return f"[{bullet.id}] helpful={bullet.helpful} harmful={bullet.harmful} :: {bullet.content}"


def agent_line(bullet_id: str, content: str) -> str:
    return f"[{bullet_id}] {content}"


def render(doc: Document) -> str:
    """ACE text: counters included, empty sections too, so that `parse` gives the same document."""
    return _render(doc, map(ace_line, doc.bullets))


def render_for_agents(doc: Document) -> str:
    """The agent view, without counters."""
    return _render(doc, [agent_line(bullet.id, bullet.content) for bullet in doc.bullets])


def _render(doc: Document, lines: Iterable[str]) -> str:
    blocks = {section.key: [f"## {section.title}\n"] for section in doc.sections}
    for bullet, line in zip(doc.bullets, lines, strict=True):
        blocks[bullet.section].append(f"{line}\n")
    return "\n".join("".join(blocks[section.key]) for section in doc.sections)


def amend(
    text: str, sections: Sequence[Section], gone: Iterable[Bullet], new: Iterable[Bullet]
) -> str:
    """A text that `render` wrote with the bullets `gone` taken out and `new` ones put in.

    The same bytes as to render all of them, and the time of those that change.
    """
    changes: dict[str, dict[int, list[str]]] = {}
    for bullet in gone:
        changes.setdefault(bullet.section, {})[number_of(bullet.id)] = []
    for bullet in new:
        changes.setdefault(bullet.section, {})[number_of(bullet.id)] = [ace_line(bullet)]
    blocks = text.removesuffix("\n").split("\n\n")
    places = {section.key: place for place, section in enumerate(sections)}
    for key, lines_by_number in changes.items():
        lines = blocks[places[key]].split("\n")
        for number, line in lines_by_number.items():
            start = bisect_left(lines, number, lo=1, key=_number_of_line)
            stop = bisect_right(lines, number, lo=start, key=_number_of_line)
            lines[start:stop] = line
        blocks[places[key]] = "\n".join(lines)
    return "\n\n".join(blocks) + "\n" if sections else ""


def _number_of_line(line: str) -> int:
    return number_of(line[1 : line.index("]")])


def first_ids(text: str, most: int) -> list[str]:
    """The ids of the first bullets of each section in a text that `render` wrote."""
    blocks = text.removesuffix("\n").split("\n\n")
    lines = chain.from_iterable(block.split("\n", most + 1)[1 : most + 1] for block in blocks)
    return [line[1 : line.index("]")] for line in lines]


def agent_view(text: str) -> str:
    """The agent view of an ACE text that we rendered, without parsing it: `parse` costs 10 ms."""
    # split keeps what the group found: one step in C, where `sub` calls Python for every line.
    return "".join(_COUNTERS.split(text))


def without_empty_sections(text: str) -> str:
    """The agent view without the headings that have no bullet."""
    kept = _EMPTY_SECTION.sub("", text).rstrip("\n")
    return f"{kept}\n" if kept else ""


def parse(text: str, *, sections: Sequence[Section] | None = None) -> Document:
    """The document that an ACE text says, or DocumentError with the line and what to do.

    With `sections` those come first and in that order; headings found in the text that are not
    among them become default or custom sections. Blank lines and `# title` lines mean nothing.
    A bullet before the first heading goes to OTHERS. Numbers are unique across sections.
    """
    reader = _Reader(list(sections or ()))
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(lines, start=1):
        try:
            reader.take(line.strip(), number)
        except DocumentError as error:
            raise DocumentError(error.message, line=number) from None
    return Document.of(reader.sections, reader.bullets)


def without_common_bullets(*texts: str) -> list[str]:
    """ACE texts without the bullets that stand in all alike, under the same heading.

    For a diff: parsing a bullet costs 10 µs, and of a thousand two may differ.
    """
    lines: list[list[tuple[str, str]]] = [[] for _ in texts]
    for text, found in zip(texts, lines, strict=True):
        heading = ""
        for line in text.split("\n"):
            heading = line if line.startswith("## ") else heading
            found.append((heading, line))
    common = set.intersection(*map(set, lines))
    return ["\n".join(x[1] for x in found if x[0] == x[1] or x not in common) for found in lines]


@dataclass
class _Reader:
    sections: list[Section]
    bullets: list[Bullet] = field(default_factory=list)
    lines: dict[int, int] = field(default_factory=dict)
    current: str = ""

    def take(self, line: str, number: int) -> None:
        if match := BULLET_LINE.match(line):
            self._bullet(match, number)
        elif line.startswith("##") and not line.startswith("###"):
            self._open(clean_title(line))
        elif line and not re.match(r"#(?!#)", line):
            raise DocumentError(
                "This is neither a heading `## TITLE` nor a bullet "
                "`[str-00001] helpful=0 harmful=0 :: advice`. Rewrite it as one, or remove it."
            )

    def _open(self, title: str) -> None:
        found = find_heading(self.sections, title)
        if found is None:
            if len(self.sections) >= HEADING_LIMIT:
                raise DocumentError(f"A playbook has at most {HEADING_LIMIT} sections.")
            found = section_for(title, self.sections)
            self.sections.append(found)
        self.current = found.key

    def _bullet(self, match: re.Match[str], line: int) -> None:
        bullet_id, helpful, harmful, content = match.groups()
        if not re.fullmatch(_ID, bullet_id):
            raise DocumentError(
                f"`[{clean_line(bullet_id, limit=40)}]` is not a bullet id. "
                "Use 2-8 lowercase letters, a dash and five digits, as in `[str-00001]`."
            )
        number = number_of(bullet_id)
        if number in self.lines:
            raise DocumentError(
                f"The number of `{bullet_id}` is already used on line {self.lines[number]}; "
                "a number belongs to one bullet, across all sections."
            )
        if max(len(helpful), len(harmful)) > COUNTER_DIGITS:
            raise DocumentError(f"A counter has at most {COUNTER_DIGITS} digits.")
        if not self.current:
            self._open(OTHERS.title)
        self.lines[number] = line
        self.bullets.append(
            Bullet(bullet_id, self.current, clean_content(content), int(helpful), int(harmful))
        )
