"""Validation of what people type about a playbook: names, descriptions, sections, numbers."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from core.errors import Invalid
from core.security.scopes import Principal
from playbooks.document.content_safety import find_hazards
from playbooks.document.sections import SLUG, Section, complete_sections, name_key, section_for
from playbooks.document.text import DocumentError, clean_line, clean_title

NAME_LIMIT = 120
DESCRIPTION_LIMIT = 1_000
SECTION_LIMIT = 50


def clean_name(name: str) -> str:
    """1-120 printable characters on one line; Invalid otherwise."""
    name = clean_line(name)
    if not 0 < len(name) <= NAME_LIMIT:
        raise Invalid.field("name", f"Enter a name of 1 to {NAME_LIMIT} characters.")
    return name


def clean_description(description: str) -> str:
    """At most 1,000 printable characters, line breaks folded; Invalid otherwise."""
    description = clean_line(description)
    if len(description) > DESCRIPTION_LIMIT:
        raise Invalid.field("description", f"Use at most {DESCRIPTION_LIMIT:,} characters.")
    return description


def refuse_risky_texts(by: Principal, **texts: Iterable[str]) -> None:
    """Raise Invalid when a key or app sets a name or heading that a bullet would wait with.

    Agents read these too, and the review queue holds bullets only.
    """
    for field, values in texts.items():
        if not by.is_person and any(map(find_hazards, values)):
            raise Invalid.field(
                field,
                "An API key or app cannot set a name, description or heading with a link, command,"
                " secret or instruction. A person can, on the page.",
            )


def clean_sections(sections: Sequence[Section]) -> tuple[Section, ...]:
    """The headings of a new playbook: a missing key or slug is derived, OTHERS is added.

    Invalid for a bad title or slug, or a name that two sections share.
    """
    if len(sections) > SECTION_LIMIT:
        raise Invalid.field("sections", f"Use at most {SECTION_LIMIT} sections.")
    found: list[Section] = []
    for section in sections:
        found.append(_clean_section(section, found))
    whole = complete_sections(found)
    _refuse_shared_names(whole)
    return whole


def _clean_section(section: Section, taken: Sequence[Section]) -> Section:
    try:
        title = clean_title(section.title)
    except DocumentError as error:
        raise Invalid.field("sections", error.message) from None
    derived = section_for(title, taken)
    slug = section.slug or derived.slug
    if not SLUG.fullmatch(slug):
        raise Invalid.field("sections", "A slug has 2 to 8 lowercase letters, such as `str`.")
    aliases = tuple(
        clean_line(alias, limit=NAME_LIMIT) for alias in section.aliases if alias.strip()
    )
    key = name_key(section.key) if section.key else derived.key
    return replace(derived, key=key, slug=slug, aliases=aliases or derived.aliases)


def _refuse_shared_names(sections: Iterable[Section]) -> None:
    """Raise Invalid unless each key, title and slug is one section's, so that text parses back."""
    seen: dict[str, Section] = {}
    for section in sections:
        for name in {section.key, name_key(section.title), section.slug}:
            if seen.setdefault(name, section) is not section:
                raise Invalid.field("sections", f"Two sections share the name `{name}`.")
