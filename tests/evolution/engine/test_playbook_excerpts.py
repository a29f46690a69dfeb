"""What a large playbook looks like in a prompt: bounded, in order, and safe to edit from."""

from itertools import count

import pytest

from evolution.engine.curator import ReflectedOutcome, curate, curation_request, playbook_view
from evolution.engine.evolve import curation_operations
from evolution.engine.inputs import PlaybookInput
from evolution.engine.prompt_excerpts import (
    CURATOR_TOKENS,
    REFLECTOR_TOKENS,
    harmful_bullets,
    relevant_bullets,
)
from evolution.engine.prompt_text import FULL_LIMITS, SHORT_LIMITS
from evolution.engine.reflector import Reflection, reflection_request
from playbooks.document.deltas import apply_operations
from playbooks.document.operations import Policy
from playbooks.document.sections import DEFAULT_SECTIONS
from playbooks.document.state import BulletState, State
from playbooks.document.text import Bullet, Document, estimate_tokens
from tests.evolution.engine.fakes import EngineHarness, outcome

WORDS = [
    "ledger",
    "invoice",
    "margin",
    "accrual",
    "discount",
    "maturity",
    "coupon",
    "hedge",
    "yield",
    "basis",
]
NUMBERS = count(1)
SIZES = pytest.mark.parametrize("bullets", [400, 1_500])


def large(bullets: int = 400) -> PlaybookInput:
    """About 50 tokens a bullet; bullet n is about the words at the digits of n."""
    section = DEFAULT_SECTIONS[0].key
    made = (
        Bullet(f"str-{n:05d}", section, f"When case {n} has {topic(n)}: {'check it twice, ' * 9}")
        for n in range(1, bullets + 1)
    )
    return PlaybookInput(Document.of(DEFAULT_SECTIONS, made), token_budget=100_000)


def topic(number: int) -> str:
    return " ".join(WORDS[int(digit)] for digit in f"{number:03d}")


def studied(insight: str = "", cited: tuple[str, ...] = ()) -> ReflectedOutcome:
    return ReflectedOutcome(
        outcome(f"o{next(NUMBERS)}", cited=cited), Reflection(key_insight=insight)
    )


@SIZES
def test_the_curators_view_is_bounded_whatever_the_size(bullets: int) -> None:
    view = playbook_view([studied("hedge the yield")], large(bullets), FULL_LIMITS)
    assert view.full_text
    assert estimate_tokens(view.block + view.full_text) <= CURATOR_TOKENS * 1.01


@SIZES
def test_the_reflectors_view_is_bounded_whatever_the_size(bullets: int) -> None:
    small = reflection_request("m", outcome(cited=()), large(1), FULL_LIMITS).messages[1]["content"]
    prompt = reflection_request("m", outcome(cited=()), large(bullets), FULL_LIMITS).messages[1][
        "content"
    ]
    assert estimate_tokens(prompt) - estimate_tokens(small) <= REFLECTOR_TOKENS


def test_up_to_its_bound_the_whole_playbook_is_shown() -> None:
    view = playbook_view([studied()], large(100), FULL_LIMITS)
    assert not view.full_text
    assert len(view.read) == 100


def test_the_index_names_every_bullet_by_its_first_words() -> None:
    block = playbook_view([studied()], large(), FULL_LIMITS).block
    assert all(f"[str-{n:05d}] When case {n} " in block for n in range(1, 401))
    assert "## STRATEGIES & INSIGHTS" in block


def test_cited_problematic_and_relevant_bullets_are_shown_in_full() -> None:
    playbook = large()
    bullets = list(playbook.document.bullets)
    bullets[76] = Bullet("str-00077", bullets[76].section, bullets[76].content, 1, 1)
    playbook = PlaybookInput(Document.of(DEFAULT_SECTIONS, bullets), 100_000)
    view = playbook_view([studied(f"Mind {topic(246)}.", ("str-00300",))], playbook, FULL_LIMITS)
    assert {"str-00300", "str-00077", "str-00246"} <= view.read
    assert 20 <= len(view.read) <= 80


def test_a_bullet_that_a_reflection_wants_to_read_differently_is_shown_in_full() -> None:
    asked = ReflectedOutcome(
        outcome(), Reflection(key_insight="", correct_approach="Reword [STR-00123].")
    )
    assert "str-00123" in playbook_view([asked], large(), FULL_LIMITS).read


def test_the_index_is_the_same_for_every_batch_so_that_a_cache_keeps_it() -> None:
    first, second = (
        curation_request("m", [studied(f"Mind {topic(n)}.")], large(), FULL_LIMITS).messages
        for n in (123, 321)
    )
    ends = {m[1]["content"].partition("# Bullets in full")[0] for m in (first, second)}
    assert first[0] == second[0]
    assert len(ends) == 1


def test_the_same_question_is_asked_in_the_same_words() -> None:
    views = {playbook_view([studied("hedge the yield")], large(), FULL_LIMITS) for _ in range(2)}
    assert len(views) == 1


def test_a_prompt_that_was_too_long_gets_a_quarter_of_the_view() -> None:
    view = playbook_view([studied()], large(), SHORT_LIMITS)
    assert estimate_tokens(view.block + view.full_text) <= CURATOR_TOKENS * 0.26


def test_an_edit_of_a_bullet_known_from_the_index_only_is_rejected(stage: EngineHarness) -> None:
    playbook, batch = large(), [studied("hedge", ("str-00300",))]
    unread = min(set(playbook.document.by_id()) - playbook_view(batch, playbook, FULL_LIMITS).read)
    edits = [
        {"type": "UPDATE", "id": name, "content": "Overwritten."} for name in ("str-00300", unread)
    ]
    stage.fake.say("curator", {"reasoning": "", "operations": edits})
    asked = batch[0]
    curation = curate(
        stage.engine._llm, "m", {asked.outcome.id: asked.reflection}, [asked.outcome], playbook
    )
    bullets = {b.id: BulletState(b.id, b.section, b.content) for b in playbook.document.bullets}
    state = State(playbook.document.sections, bullets, 401)
    result = apply_operations(
        state, curation_operations(curation), Policy(machine=True, token_budget=100_000)
    )
    assert [(r.status, r.reason_code) for r in result.records] == [
        ("applied", ""),
        ("rejected", "conflict"),
    ]


def test_a_revision_is_not_the_models_to_give(stage: EngineHarness) -> None:
    stage.fake.say(
        "curator", {"operations": [{"type": "UPDATE", "id": "str-00001", "revision": 9}]}
    )
    assert stage.ask("curator").operations[0].revision is None
    schema = stage.fake.requests[0].body["response_format"]["json_schema"]["schema"]
    assert "revision" not in str(schema)


def test_harm_without_more_help_makes_a_bullet_problematic() -> None:
    section = DEFAULT_SECTIONS[0].key
    votes = {"str-00001": (0, 0), "str-00002": (3, 1), "str-00003": (1, 1), "str-00004": (0, 2)}
    bullets = [Bullet(name, section, "x", *counters) for name, counters in votes.items()]
    document = Document.of(DEFAULT_SECTIONS, bullets)
    assert harmful_bullets(document) == ["str-00003", "str-00004"]


def test_relevance_goes_by_rare_words_and_bears_with_inflections() -> None:
    section = DEFAULT_SECTIONS[0].key
    texts = ["Convert the percentages.", "Convert the currency.", "Convert the dates."]
    bullets = [Bullet(f"str-{n:05d}", section, text) for n, text in enumerate(texts, start=1)]
    document = Document.of(DEFAULT_SECTIONS, bullets)
    assert relevant_bullets(document, "convert a percentage") == [
        "str-00001",
        "str-00002",
        "str-00003",
    ]
    assert relevant_bullets(document, "nothing at hand") == []
