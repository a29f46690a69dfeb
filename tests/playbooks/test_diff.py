"""The diff of bullets and of words. No Django, no database."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from playbooks.document.diff import compare, diff_words
from playbooks.document.text import Document, parse, render, without_common_bullets
from tests.playbooks.strategies import CONTENT, documents


@given(CONTENT, CONTENT)
def test_diff_segments_joined_give_both_texts(before: str, after: str) -> None:
    marks = diff_words(before, after)
    assert "".join(m.text for m in marks if m.kind != "added") == before
    assert "".join(m.text for m in marks if m.kind != "removed") == after


def test_only_the_words_that_differ_are_marked() -> None:
    marks = diff_words("Read the failing test first.", "Read every failing test first.")
    assert [(m.kind, m.text) for m in marks] == [
        ("same", "Read"),
        ("removed", " the"),
        ("added", " every"),
        ("same", " failing test first."),
    ]


@given(documents())
def test_a_document_does_not_differ_from_itself(document: Document) -> None:
    assert compare(document, document).is_empty


@given(documents(), st.lists(st.sampled_from(["same", "gone", "voted", "moved"]), min_size=8))
def test_bullets_that_stand_in_both_texts_make_no_difference(
    before: Document, fates: list[str]
) -> None:
    last = before.sections[-1].key
    kept = [(b, fate) for b, fate in zip(before.bullets, fates, strict=False) if fate != "gone"]
    changes: dict[str, dict[str, Any]] = {
        "same": {},
        "voted": {"helpful": 99},
        "moved": {"section": last},
    }
    after = Document.of(before.sections, [replace(b, **changes[fate]) for b, fate in kept])
    texts = without_common_bullets(render(before), render(after))
    old, new = (parse(text, sections=before.sections) for text in texts)
    assert compare(old, new) == compare(before, after)
    assert len(old.bullets) <= sum(fate != "same" for fate in fates)
