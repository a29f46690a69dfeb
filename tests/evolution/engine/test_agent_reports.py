"""How well the rules engine reads reports as agents write them, and what hostile ones cost."""

import time
from pathlib import Path

import pytest

from evolution.engine.providers.lesson_extraction import lessons
from evolution.engine.providers.rules_engine import RulesEngine
from tests.evolution.engine.fakes import PLAYBOOK, outcome
from tests.evolution.engine.report_scores import (
    REPORTS,
    UNSEEN,
    ReportScore,
    halves,
    read,
    score,
    summary,
    table,
)

DOCS = Path(__file__).parents[3] / "docs" / "RULES_ENGINE.md"
MADE, HELD = halves(read(REPORTS))


@pytest.mark.parametrize(
    "found", [score(MADE), score(HELD), score(read(UNSEEN))], ids=["made", "held", "unseen"]
)
def test_three_of_four_lessons_are_right_and_half_are_found(found: ReportScore) -> None:
    assert found.precision >= 0.85
    assert found.recall >= 0.8
    assert found.votes_share >= 0.85


def test_the_figures_in_the_docs_are_the_measured_ones() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert [line for line in (*summary(), *table()) if line not in text] == []


def found(notes: str, trace: str = "") -> list[str]:
    return [lesson.content for lesson in lessons(notes, trace)]


@pytest.mark.parametrize(
    ("notes", "content"),
    [
        ("Failed. The job id is the batch, not the row.", "The job id is the batch, not the row."),
        ("It broke because ids are text: sort by number.", "Ids are text: sort by number."),
        ("Should have read the changelog first.", "Read the changelog first."),
        ("Checking the logs first would have saved a day.", "Check the logs first."),
        ("Note for later: never trust the clock of a phone.", "Never trust the clock of a phone."),
        ("Immer zuerst die Quelle prüfen, bevor gerechnet wird.", None),
        ("Siempre leer el contrato antes de responder.", None),
        ("Toujours relire le contrat avant de répondre.", None),
    ],
)
def test_advice_is_found_in_many_forms(notes: str, content: str | None) -> None:
    assert found(notes) == [content or notes]


@pytest.mark.parametrize(
    "notes",
    [
        "Remind me to call the bank about it.",
        "Close the ticket ABC-123 after the release.",
        "The report must be sent to Tom by Friday.",
        "Please review the wording of the letter.",
        "Sure, always trust the numbers, what could go wrong.",
        "Always use the old address. Scratch that.",
        "It is wrong here, not there.",
    ],
)
def test_what_is_said_once_in_jest_or_taken_back_is_no_lesson(notes: str) -> None:
    assert found(notes) == []


def test_the_output_of_programs_teaches_nothing() -> None:
    trace = "hint: Updates were rejected.\nwarning: always back up data\ntip: run npm audit fix"
    assert found("", trace) == []


def test_items_of_a_numbered_line_are_lessons_of_their_own() -> None:
    notes = "Takeaways: (1) keep batches under 500 rows; (2) lock rows in key order."
    assert found(notes) == ["Keep batches under 500 rows", "Lock rows in key order."]


HOSTILE = [
    *("a, ", "so ", ": ", "1) ", "lesson: ", "X is a, not b. ", "scratch that ", "wenn a b c d, "),
    *("\n", "a\nb is, not c\n", "antes de ", "in future ", "should have ", "müssen ", "str-00001 "),
]


@pytest.mark.parametrize("part", HOSTILE, ids=repr)
def test_a_report_of_twenty_kilobytes_is_read_quickly(part: str) -> None:
    text = (part * 20_000)[:20_000]
    lines = "\n".join(text[at : at + 1_900] for at in range(0, len(text), 1_900))
    for notes in (text, lines):
        began = time.process_time()
        RulesEngine().reflect(outcome("a", "failure", notes=notes), PLAYBOOK)
        assert time.process_time() - began < 0.25
