"""Documents and operations for hypothesis: any text that people and models can send."""

from hypothesis import strategies as st

from core.errors import Invalid
from playbooks.document.operations import Operation
from playbooks.document.sections import DEFAULT_SECTIONS, Section
from playbooks.document.text import (
    Bullet,
    Document,
    DocumentError,
    clean_content,
    make_id,
    normal_text,
)
from playbooks.services.validation import clean_sections

LAYOUT = st.sampled_from(
    ["\n", "\r\n", "\u2028", "## X", "# ", "[str-00001] helpful=1 harmful=0 ::", "::", "\x00"]
    + ["[", "]", "helpful=1", "harmful=", " ", "\u200b", "\ud800", "e\u0301", "\x85", "\x1c"]
)
TEXT = st.lists(LAYOUT | st.text(max_size=12), max_size=12).map("".join)


def _clean(text: str) -> str:
    """The content, or nothing where it would be refused."""
    try:
        return clean_content(text)
    except DocumentError:
        return ""


CONTENT = TEXT.map(_clean).filter(bool)
TITLES = st.lists(
    st.text("ABC dé&-Ж1", min_size=3, max_size=12).filter(lambda t: t.strip(" -&")),
    max_size=3,
    unique_by=lambda title: title.strip(),
)


def _sections(titles: list[str]) -> tuple[Section, ...]:
    """The sections, or nothing where these titles would be refused."""
    try:
        return clean_sections([Section("", title, "") for title in titles])
    except Invalid:
        return ()


SECTIONS = st.just(DEFAULT_SECTIONS) | TITLES.map(_sections).filter(bool)


@st.composite
def documents(draw: st.DrawFn, *, custom: bool = True) -> Document:
    sections = draw(SECTIONS if custom else st.just(DEFAULT_SECTIONS))
    texts = draw(st.lists(CONTENT, max_size=8, unique_by=normal_text))
    numbers = draw(st.lists(st.integers(1, 120_000), min_size=8, max_size=8, unique=True))
    counters = st.integers(0, 9)
    return Document.of(
        sections,
        [
            Bullet(make_id(home, number), home.key, text, draw(counters), draw(counters))
            for text, number in zip(texts, numbers, strict=False)
            for home in [draw(st.sampled_from(sections))]
        ],
    )


def operations(ids: list[str]) -> st.SearchStrategy[list[Operation]]:
    """Lists of operations on known and unknown ids, sensible and senseless ones."""
    known = st.sampled_from([*ids, "str-99999", ""])
    one = st.builds(
        Operation,
        type=st.sampled_from(
            ["ADD", "UPDATE", "TAG", "REMOVE", "MERGE", "PIN", "RESTORE", "delete", "FOO"]
        ),
        section=st.sampled_from(["", "str", "others", "nowhere"]),
        id=known,
        ids=st.lists(known, max_size=3).map(tuple),
        content=TEXT,
        tag=st.sampled_from(["helpful", "harmful", "neutral", "on", "off", "?"]),
        source=st.sampled_from(["reflector", "user:1"]),
        reason=TEXT,
        outcome_ids=st.lists(st.sampled_from(["a", "b", "c"]), max_size=2).map(tuple),
        revision=st.sampled_from([None, None, 1, 2]),
    )
    return st.lists(one, max_size=10)
