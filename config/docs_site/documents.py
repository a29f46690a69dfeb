"""The documents of docs/ in the order of the sidebar; add a new one to SECTIONS.

Unlisted documents come last, under "More". Measurements for engineers are in docs/engineering,
which is read in the repository only.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

SECTIONS: dict[str, tuple[str, ...]] = {
    "Get started": ("QUICKSTART", "CONCEPTS", "PAGES"),
    "Connect agents": ("CLIENTS", "MCP", "REST", "SESSIONS", "WEBHOOKS"),
    "How it works": ("ACE", "EVIDENCE", "RULES_ENGINE", "ADAPTATION", "BENCHMARK_QUALITY"),
    "Operate": (
        *("SELF_HOSTING", "CONFIGURATION", "LOCAL_MODELS", "OPERATIONS", "UPGRADING", "BILLING"),
        *("SECURITY", "TROUBLESHOOTING"),
    ),
    "Develop": ("CONTRIBUTING", "ARCHITECTURE", "EVOLUTION"),
}
UNLISTED = "More"
FENCE = re.compile(r"^ *(`{3,}|~{3,})")
INCLUDE = re.compile(r"^<!-- include (\S+) -->$", re.MULTILINE)
NON_ANCHOR = re.compile(r"[^\w\- ]")
COMMENT = re.compile(r"^ *<!--.*-->\s*$")


@dataclass(frozen=True)
class Document:
    """One Markdown file: its sidebar group, its path below /docs and its file."""

    group: str
    slug: str
    path: Path

    @property
    def text(self) -> str:
        """The Markdown with included files as code, without HTML comments (editors' notes)."""
        text = INCLUDE.sub(self._include, self.path.read_text(encoding="utf-8"))
        return "".join(_without_comments(text))

    def _include(self, comment: re.Match[str]) -> str:
        return f"```sh\n{(self.path.parent / comment[1]).read_text(encoding='utf-8')}```"

    @property
    def title(self) -> str:
        first = self.text.lstrip().partition("\n")[0]
        return first.removeprefix("# ").replace("`", "") if first.startswith("# ") else self.slug

    @property
    def summary(self) -> str:
        """The first sentence of the first paragraph, as plain text."""
        for block in re.split(r"\n\s*\n", self.text):
            words = " ".join(block.split())
            if words and words[0] not in "#|`>-!<":
                plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words).replace("`", "")
                return re.split(r"(?<=[.!?])\s", plain.replace("*", ""))[0]
        return ""


@dataclass(frozen=True)
class DocumentSection:
    """A heading of a document with the text up to the next one; `folded` is for comparing."""

    document: Document
    title: str
    heading: str
    anchor: str
    folded: str


def find_sections(documents: list[Document], words: str) -> list[DocumentSection]:
    """The sections with every word, those first that have them all in the heading."""
    wanted = words.casefold().split()
    sections = (
        section
        for document in documents
        for section in _sections(document, document.path.stat().st_mtime_ns)
    )
    found = [one for one in sections if all(word in one.folded for word in wanted)]
    return sorted(found, key=lambda one: not all(w in one.heading.casefold() for w in wanted))


@lru_cache(maxsize=128)
def _sections(document: Document, changed: int) -> tuple[DocumentSection, ...]:
    """Split at headings; a line of a code block is none. An unchanged file is split once."""
    parts: list[tuple[str, list[str]]] = []
    in_code = False
    for line in document.text.splitlines():
        in_code ^= FENCE.match(line) is not None
        if line.startswith("#") and not in_code:
            parts.append((line.lstrip("# ").replace("`", ""), []))
        elif parts:
            parts[-1][1].append(line)
    return tuple(
        DocumentSection(
            document,
            parts[0][0],
            heading,
            anchor_of(heading),
            f"{parts[0][0]} {heading} {' '.join(lines)}".casefold(),
        )
        for heading, lines in parts
    )


def anchor_of(heading: str) -> str:
    """The id that GitHub gives a heading."""
    return NON_ANCHOR.sub("", heading.strip().lower()).replace(" ", "-")


def slug_of(name: str) -> str:
    """`SELF_HOSTING` → `self-hosting`."""
    return name.lower().replace("_", "-")


def documents_in(folder: Path) -> list[Document]:
    """The documents of the folder, in order."""
    there = {path.stem: path for path in sorted(folder.glob("*.md"))}
    listed = [
        Document(group, slug_of(name), there.pop(name))
        for group, names in SECTIONS.items()
        for name in names
        if name in there
    ]
    return listed + [Document(UNLISTED, slug_of(name), path) for name, path in there.items()]


def _without_comments(text: str) -> Iterator[str]:
    """The lines that are not comments; inside a code block a comment is code."""
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        if fence or not COMMENT.match(line):
            yield line
