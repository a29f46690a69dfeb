"""Sections of a playbook: the default ones, custom ones, and finding one by any name."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_lowercase

from core.text import normalize

TITLE_LIMIT = 120
KEY_LIMIT = 60
SLUG = re.compile(r"[a-z]{2,8}")


@dataclass(frozen=True)
class Section:
    """One heading. `slug` (2-8 letters) starts the ids of the bullets that are added to it."""

    key: str
    title: str
    slug: str
    aliases: tuple[str, ...] = ()


# An edit of 200 operations looks through a thousand aliases for each.
@lru_cache(maxsize=4096)
def name_key(name: str) -> str:
    """The form in which two names of a section are compared, and a custom section's key."""
    folded = normalize("NFKC", name).casefold().replace("&", " and ")
    key = re.sub(r"[\W_]+", "_", folded).strip("_") or "section"
    if len(key) <= KEY_LIMIT:
        return key
    return f"{key[: KEY_LIMIT - 9]}_{hashlib.sha256(key.encode()).hexdigest()[:8]}"


_MISTAKES = "mistakes, mistake, common mistakes, pitfalls, avoid, err"
_DEFAULTS = (
    ("STRATEGIES & INSIGHTS", "str", "strategies, strategy, insights, insight"),
    ("FORMULAS & CALCULATIONS", "calc", "formulas, formula, calculations, calculation"),
    ("CODE SNIPPETS & TEMPLATES", "code", "snippets, code snippets, templates, apis"),
    ("COMMON MISTAKES TO AVOID", "mis", _MISTAKES),
    ("PROBLEM-SOLVING HEURISTICS", "heur", "heuristics, heuristic, problem solving, prob"),
    ("CONTEXT CLUES & INDICATORS", "ctx", "context, context clues, indicators"),
    ("OTHERS", "misc", "other, general, miscellaneous"),
)
DEFAULT_SECTIONS = tuple(
    Section(name_key(title), title, slug, tuple(aliases.split(", ")))
    for title, slug, aliases in _DEFAULTS
)
OTHERS = DEFAULT_SECTIONS[-1]
_DEFAULT_BY_KEY = {section.key: section for section in DEFAULT_SECTIONS}


def find_section(sections: Iterable[Section], name: str) -> Section | None:
    """The section with this key, title, slug or alias, in this order; None when there is none."""
    if not name.strip():
        return None
    known, wanted = tuple(sections), name_key(name[: 4 * TITLE_LIMIT])
    return (
        next((s for s in known if wanted in {s.key, name_key(s.title)}), None)
        or next((s for s in known if wanted == s.slug), None)
        or next((s for s in known if wanted in {name_key(alias) for alias in s.aliases}), None)
    )


def find_heading(sections: Iterable[Section], title: str) -> Section | None:
    """The section that a `## TITLE` line means: key or title only, never a slug or an alias."""
    wanted = name_key(title)
    return next((s for s in sections if wanted in {s.key, name_key(s.title)}), None)


def fallback_section(sections: Sequence[Section]) -> Section:
    """OTHERS, or the last section where a playbook has no OTHERS."""
    return next((s for s in sections if s.key == OTHERS.key), sections[-1])


def section_for(title: str, taken: Sequence[Section]) -> Section:
    """The default section with this title, else a custom one with a free slug."""
    key = name_key(title)
    return _DEFAULT_BY_KEY.get(key) or Section(key, title, _free_slug(title, taken))


def _free_slug(title: str, taken: Sequence[Section]) -> str:
    """2-8 letters from the title that no section of the playbook and no default one uses."""
    used = {s.slug for s in (*taken, *DEFAULT_SECTIONS)}
    plain = normalize("NFKD", title).casefold()
    letters = "".join(char for char in plain if char in ascii_lowercase)[:4]
    stem = letters if len(letters) >= 2 else "sec"
    pairs = [a + b for a in ascii_lowercase for b in ascii_lowercase]
    slugs: list[str] = [stem + ending for ending in ("", *ascii_lowercase, *pairs)]
    return next(slug for slug in slugs if slug not in used)


def complete_sections(sections: Sequence[Section]) -> tuple[Section, ...]:
    """The sections of a playbook with these headings: OTHERS is always among them.

    Headings that are all default ones are filled up to the seven; custom ones get only OTHERS.
    Completing twice changes nothing, so an export imports as it was.
    """
    given = tuple(sections)
    keys = {section.key for section in given}
    if not keys <= _DEFAULT_BY_KEY.keys():
        return given if OTHERS.key in keys else (*given, OTHERS)
    if given == tuple(s for s in DEFAULT_SECTIONS if s.key in keys):
        return DEFAULT_SECTIONS
    return (*given, *(s for s in DEFAULT_SECTIONS if s.key not in keys))
