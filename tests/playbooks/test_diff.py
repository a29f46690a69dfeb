"""The diff of bullets and of words. No Django, no database."""

from hypothesis import given

from playbooks.document.diff import compare, diff_words
from playbooks.document.text import Document
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
