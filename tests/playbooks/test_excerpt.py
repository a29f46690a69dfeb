"""Which bullets fit a limit of tokens."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from playbooks.document.excerpt import ExcerptIndex, OmittedBullets
from playbooks.document.sections import DEFAULT_SECTIONS
from playbooks.document.text import Bullet, Document, estimate_tokens, make_id, render_for_agents

FIRST, *_REST, LAST = DEFAULT_SECTIONS
ADVICE = "Read the failing test before the code, and say what it wants."


def document(*votes: tuple[int, int], content: str = ADVICE) -> Document:
    """One bullet for each (helpful, harmful), in the first and the last section in turn."""
    sections = [FIRST if number % 2 == 0 else LAST for number in range(len(votes))]
    return Document.of(
        DEFAULT_SECTIONS,
        [
            Bullet(make_id(section, number), section.key, f"{content} {number}", good, bad)
            for number, (section, (good, bad)) in enumerate(zip(sections, votes, strict=True), 1)
        ],
    )


def test_the_most_helpful_bullets_are_kept_and_the_rest_counted_by_section() -> None:
    excerpt = ExcerptIndex(document((0, 0), (9, 0), (5, 0), (1, 1), (0, 3))).take(max_tokens=60)
    assert "[misc-00002]" in excerpt.text
    assert "[str-00003]" in excerpt.text
    assert "[str-00001]" not in excerpt.text
    assert excerpt.left_out == (OmittedBullets(FIRST.title, 2), OmittedBullets(LAST.title, 1))


def test_headings_without_a_bullet_are_left_out() -> None:
    excerpt = ExcerptIndex(document((0, 0), (9, 0))).take(max_tokens=30)
    assert excerpt.text.startswith(f"## {LAST.title}\n[misc-00002]")
    assert FIRST.title not in excerpt.text


def test_harm_weighs_twice() -> None:
    excerpt = ExcerptIndex(document((4, 3), (0, 0))).take(max_tokens=30)
    assert "[misc-00002]" in excerpt.text


def test_a_long_bullet_makes_room_for_shorter_ones() -> None:
    plain = document((1, 0), (0, 0))
    first, second = plain.bullets
    long = Document.of(DEFAULT_SECTIONS, [replace(first, content="x" * 2_000), second])
    assert "[misc-00002]" in ExcerptIndex(long).take(max_tokens=100).text


def test_where_nothing_fits_all_bullets_are_counted_as_omitted() -> None:
    excerpt = ExcerptIndex(document((1, 0), (0, 0))).take(max_tokens=1)
    assert (excerpt.text, sum(part.bullets for part in excerpt.left_out)) == ("", 2)


@given(
    votes=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12),
    max_tokens=st.integers(1, 400),
)
def test_an_excerpt_fits_and_counts_every_omitted_bullet(
    votes: list[tuple[int, int]], max_tokens: int
) -> None:
    whole = document(*votes)
    excerpt = ExcerptIndex(whole).take(max_tokens=max_tokens)
    shown = excerpt.text.count("\n[") if excerpt.text else 0
    assert estimate_tokens(excerpt.text) <= max_tokens
    assert shown + sum(part.bullets for part in excerpt.left_out) == len(whole.bullets)
    assert set(excerpt.text.splitlines()) <= {*render_for_agents(whole).splitlines()}


def test_bullets_about_the_task_come_in_beside_the_best_voted() -> None:
    texts = ["Lock rows in one order.", "Pin the docker image.", "Read the failing test first."]
    votes = [9, 0, 5]
    bullets = [
        Bullet(make_id(LAST, n), LAST.key, text, helpful=votes[n - 1])
        for n, text in enumerate(texts, 1)
    ]
    whole = Document.of([LAST], bullets)
    assert "docker" not in ExcerptIndex(whole).take(max_tokens=25).text
    text = ExcerptIndex(whole).take(max_tokens=25, task="Build the Docker images anew").text
    assert "docker" in text
    assert "Lock rows" in text


def test_a_task_brings_in_no_bullet_that_harmed_more_than_it_helped() -> None:
    harmful = Bullet(make_id(LAST, 1), LAST.key, "Pin the docker image.", harmful=3)
    whole = Document.of([LAST], [harmful, Bullet(make_id(LAST, 2), LAST.key, "Read it first.")])
    assert "docker" not in ExcerptIndex(whole).take(max_tokens=12, task="docker image").text
