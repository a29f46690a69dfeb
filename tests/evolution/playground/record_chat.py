"""The recorded chat of the playground: a script plays the model."""

from typing import Any

from accounts.models import User
from core.security.scopes import Principal
from evolution.playground import chat_lifecycle
from evolution.playground.chat_display import ChatSide, chat_side
from tests.factories import make_playbook
from tests.harness.fake_llm.model import FakeLLM

PLAYBOOK = """\
## STRATEGIES & INSIGHTS
[str-00001] helpful=6 harmful=0 :: Read the failing test before the code: it says what is meant.
[str-00002] helpful=3 harmful=0 :: Run one failing test alone first, then with its neighbours.

## FORMULAS & CALCULATIONS
[calc-00003] helpful=4 harmful=1 :: Money is Decimal from end to end; round once, when it is shown.

## COMMON MISTAKES TO AVOID
[mis-00004] helpful=2 harmful=0 :: Do not loosen an assertion to make a build green.
[mis-00005] helpful=1 harmful=0 :: A test that fails only on CI usually reads the clock, the time zone or the order of files.
"""  # noqa: E501 - a bullet is one line
QUESTIONS = (
    "The nightly build is red: test_invoice expects 10.12 and gets 10.13. What do I do?",
    "It is green here, and red on CI only. Any idea?",
)
WITH = (
    (
        "Read what the test means first [str-00001]: is 10.12 the sum of rounded lines, ",
        "or the rounded sum?\n\nA cent of difference is almost always rounding in the middle. ",
        "Keep the lines as Decimal and round once, at the total [calc-00003]. ",
        "Do not accept 10.13 in the test just to get it green [mis-00004].",
    ),
    (
        "Then look for what differs there before you look at the sum: the clock, the time zone, ",
        "the order of files [mis-00005]. Does the invoice pick a tax rate by date?\n\n",
        "Run test_invoice alone with TZ=UTC, then with the whole module [str-00002].",
    ),
)
WITHOUT = (
    (
        "You could compare with a tolerance, for example abs(total - 10.12) < 0.02, ",
        "or update the expected value to 10.13 if the new one looks right.",
    ),
    ("It may be flaky. Try to run the job again, ", "and compare the versions of the libraries."),
)


def record(alice: User, llm: FakeLLM) -> dict[str, Any]:
    """The content of `evolution/playground/recorded_chat.json`, made as any chat."""
    by = Principal.of(alice)
    playbook = make_playbook(alice, name="Fixing builds", text=PLAYBOOK)
    first = chat_lifecycle.open_chat(by=by, playbook=playbook, model="gpt-4o-mini", bare=True)
    sessions = chat_lifecycle.chat_sessions(alice, first.pk)
    for session, answers in zip(sessions, (WITH, WITHOUT), strict=True):
        for question, pieces in zip(QUESTIONS, answers, strict=True):
            llm.tell(*pieces)
            turn = chat_lifecycle.begin_turn(session=session, by=by, question=question)
            chat_lifecycle.run_turns([turn])
    sides = [chat_side(session, user=alice) for session in sessions]
    return {
        "what": "A recorded chat, played by tests/evolution/playground/record_chat.py.",
        "playbook": PLAYBOOK,
        "sides": [_side(side, key) for side, key in zip(sides, "ab", strict=True)],
    }


def _side(side: ChatSide, key: str) -> dict[str, Any]:
    return {
        "key": key,
        "label": side.label,
        "reads_playbook": bool(side.sections),
        "messages": [
            {"role": one.role, "text": "".join(piece.text for piece in one.parts)}
            for one in side.messages
        ],
    }
