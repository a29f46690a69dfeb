"""Trials from outside: many playbooks, and an agent that succeeds by the text that it reads.

`make evidence` runs them and prints the figures; tests/evolution/test_trials.py has a small form.
"""

from dataclasses import dataclass
from random import Random
from statistics import median

import pytest
from pytest_django import Settings

from accounts.models import User
from core.security.scopes import Principal
from evolution.evidence.ledger import bullet_ledger
from evolution.worker.sweep import sweep
from playbooks.document.operations import Operation
from playbooks.models import Playbook, Trial, Version
from playbooks.services.editing import edit_playbook
from playbooks.services.reading import CONTROL_READING
from playbooks.services.seals import check_seals
from playbooks.services.trials import start_trial
from tests.evolution.test_seals import rebuild, verify
from tests.factories import make_outcome, make_playbook
from tests.harness.cases import answer_cases, give_cases
from tests.harness.trials import LESSON, Rate, evolve, give_traffic, on_trial, read, work

PLAYBOOKS = 100
MANIPULATED = ("version", "delta", "outcome", "deleted outcome", "rebuilt chain")
TRIED_BULLET = "Read the failing test before the code."


@dataclass(frozen=True)
class Check:
    """Success (0 to 1) with and without what is tried, and what the trials have to find."""

    name: str
    with_it: float
    without: float
    kind: str = "version"
    worse: tuple[int, int] = (0, 100)
    better: tuple[int, int] = (0, 100)
    median: int = 500
    harder_from: int | None = None

    def rate(self, text: str) -> float:
        if self.kind == "bare":
            return self.without if text == CONTROL_READING else self.with_it
        return (
            self.with_it
            if (LESSON if self.kind == "version" else TRIED_BULLET) in text
            else (self.without)
        )


CHECKS = (
    Check("equal", 0.8, 0.8, worse=(0, 15)),
    Check("20 points worse", 0.6, 0.8, worse=(70, 100), median=115),
    Check("70 points worse", 0.1, 0.8, worse=(100, 100), median=20),
    Check("all tasks harder", 0.8, 0.8, worse=(0, 15), harder_from=40),
    Check("10 points better", 0.9, 0.8, worse=(0, 4), better=(30, 100)),
    Check("playbook helps", 0.8, 0.4, kind="bare", better=(95, 100)),
    Check("playbook is no use", 0.8, 0.8, kind="bare", better=(0, 15)),
    Check("bullet helps by 20 points", 0.8, 0.6, kind="bullet", better=(70, 100)),
)


@pytest.fixture(autouse=True)
def _quiet(settings: Settings) -> None:
    """No evolution starts by itself, and no limit on reports."""
    settings.EVOLUTION_OUTCOME_THRESHOLD = 100_000
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"report_outcome": "100000000/h"}


def begin(check: Check, by: User, number: int) -> Playbook:
    """A playbook with a running trial of this kind."""
    name = f"Playbook {number}"
    if check.kind == "version":
        return on_trial(by, name)
    playbook = make_playbook(by, name=name)
    bullet = "str-00001" if check.kind == "bullet" else ""
    start_trial(playbook=playbook, by=Principal.of(by), kind=check.kind, bullet_id=bullet)
    return playbook


def play(check: Check, playbook: Playbook, by: User, coin: Random) -> Trial:
    """The trial after all of its tasks."""
    before = check.harder_from or 500
    done = work(playbook, by, check.rate, before, coin)
    if done == check.harder_from:
        harder: Rate = lambda text: check.rate(text) - 0.25  # noqa: E731 - one expression
        work(playbook, by, harder, 200, coin)
    return Trial.objects.get(playbook=playbook)


@pytest.mark.timeout(3600)
def test_a_bullet_cited_on_hard_tasks_looks_worse_in_the_ledger_and_its_trial_says_helps(
    alice: User,
) -> None:
    """It is worth 20 points on every task; half of the tasks are hard, and only those cite it."""
    check, coin = CHECKS[-1], Random("trap")  # noqa: S311 - a repeatable simulation
    looks_worse = helps = 0
    for number in range(PLAYBOOKS):
        playbook = begin(check, alice, number)
        while Trial.objects.filter(playbook=playbook, status="running").exists():
            reading, is_hard = read(playbook, alice), coin.random() < 0.5
            has_it = TRIED_BULLET in reading.content
            rate = (0.4 if is_hard else 0.8) + 0.2 * has_it
            make_outcome(
                playbook,
                alice,
                outcome="success" if coin.random() < rate else "failure",
                serving_id=reading.serving_id,
                bullet_ids=["str-00001"] if has_it and is_hard else [],
            )
        helps += Trial.objects.get(playbook=playbook).verdict == "better"
        rows = {row.bullet.public_id: row for row in bullet_ledger(playbook=playbook)}
        looks_worse += (rows["str-00001"].difference or 0) < 0
    print(f"trap: looks worse in {looks_worse}, helps in {helps} of {PLAYBOOKS}")  # noqa: T201
    assert looks_worse * 100 >= 95 * PLAYBOOKS
    assert helps * 100 >= 70 * PLAYBOOKS


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_trials_find_what_is_there(check: Check, alice: User) -> None:
    coin = Random(check.name)  # noqa: S311 - a repeatable simulation
    found = [play(check, begin(check, alice, n), alice, coin) for n in range(PLAYBOOKS)]
    tasks = {
        verdict: [trial.tally.tasks for trial in found if trial.verdict == verdict]
        for verdict in ("worse", "better")
    }
    shown = {verdict: (len(of), median(of) if of else None) for verdict, of in tasks.items()}
    print(f"{check.name}: {shown} of {PLAYBOOKS}")  # noqa: T201 - the figures
    for verdict, (least, most) in (("worse", check.worse), ("better", check.better)):
        assert least <= len(tasks[verdict]) * 100 / PLAYBOOKS <= most
    if check.worse[0]:
        assert median(tasks["worse"]) <= check.median


def test_what_is_taken_back_reads_as_before_byte_for_byte(alice: User) -> None:
    check, coin = CHECKS[2], Random(1)  # noqa: S311 - as above
    for number in range(10):
        playbook = begin(check, alice, number)
        trial = play(check, playbook, alice, coin)
        stable = {read(playbook, alice).content for _ in range(5)}
        sweep()
        assert stable == {read(playbook, alice).content}
        trial.refresh_from_db()
        assert trial.restored_version is not None


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("name", "broken", "least", "most"),
    [("equal", 0.0, 0, 8), ("breaks a quarter", 0.25, 65, 100), ("breaks half", 0.5, 95, 100)],
)
def test_cases_refuse_what_breaks_them(
    name: str, broken: float, least: int, most: int, alice: User
) -> None:
    """An agent that answers 80 % of 20 cases right, and less of those that the version broke."""
    coin, refused = Random(name), 0  # noqa: S311 - a repeatable simulation
    for number in range(PLAYBOOKS):
        playbook = make_playbook(alice, name=f"Playbook {number}")
        give_traffic(playbook)
        give_cases(playbook, alice, 20)
        playbook = evolve(playbook, alice)
        lost = {f"Question {n}?" for n in range(round(20 * broken))}

        def passes(text: str, question: str, lost: set[str] = lost) -> bool:
            return coin.random() < (0.0 if LESSON in text and question in lost else 0.8)

        assert {read(playbook, alice).version for _ in range(5)} == {1}
        answer_cases(playbook, alice, passes)
        refused += Trial.objects.get(playbook=playbook).status == "reverting"
    print(f"cases, {name}: {refused} of {PLAYBOOKS} refused")  # noqa: T201 - the figures
    assert least <= refused * 100 / PLAYBOOKS <= most


def change_a_byte(text: str, coin: Random) -> str:
    """The text with another letter at one place."""
    place = coin.randrange(len(text))
    return f"{text[:place]}{'x' if text[place] != 'x' else 'y'}{text[place + 1 :]}"


def manipulate(playbook: Playbook, what: str, coin: Random) -> None:
    """Change one thing of version 2 behind the platform's back."""
    version = playbook.versions.get(number=2)
    if what == "version":
        text = change_a_byte(version.text, coin)
        Version.objects.filter(pk=version.pk).update(text=text)
    elif what == "delta":
        delta = version.deltas.get(type="ADD")
        assert delta.after
        after = {**delta.after, "content": change_a_byte(delta.after["content"], coin)}
        version.deltas.filter(pk=delta.pk).update(after=after)
    elif what == "outcome":
        playbook.outcomes.filter(job__isnull=False).update(status="partial")
    elif what == "deleted outcome":
        playbook.outcomes.filter(job__isnull=False).delete()
    else:
        rebuild(playbook)


@pytest.mark.parametrize("what", MANIPULATED)
def test_seals_name_every_manipulation(what: str, alice: User) -> None:
    coin, named = Random(what), 0  # noqa: S311 - a repeatable simulation
    for number in range(PLAYBOOKS):
        playbook = evolve(make_playbook(alice, name=f"Playbook {number}"), alice)
        old = read(playbook, alice).serving_id
        assert list(check_seals(playbook)) == []
        manipulate(playbook, what, coin)
        found = verify(str(playbook.pk), "--serving-id", old)
        named += "it was rewritten" in found if what == "rebuilt chain" else "seal:" in found
    print(f"seals, {what}: {named} of {PLAYBOOKS} named")  # noqa: T201 - the figures
    assert named == PLAYBOOKS


def test_a_persons_edit_is_in_all_of_the_next_readings(alice: User) -> None:
    advice = Operation("ADD", section="str", content="Ask before you delete a file.")
    found = 0
    for number in range(PLAYBOOKS):
        playbook = on_trial(alice, f"Playbook {number}")
        edit_playbook(playbook=playbook, by=Principal.of(alice), operations=[advice])
        found += sum(advice.content in read(playbook, alice).content for _ in range(20))
    print(f"edit during a trial: in {found} of {20 * PLAYBOOKS} readings")  # noqa: T201 - figures
    assert found == 20 * PLAYBOOKS


def test_with_little_traffic_everybody_reads_the_newest(alice: User) -> None:
    found = 0
    for number in range(PLAYBOOKS):
        playbook = make_playbook(alice, name=f"Playbook {number}")
        give_traffic(playbook, 18)  # and the outcome that the evolution learns from
        playbook = evolve(playbook, alice)
        found += sum(read(playbook, alice).version == 2 for _ in range(5))
    print(f"below 20 outcomes: the newest in {found} of {5 * PLAYBOOKS} readings")  # noqa: T201
    assert found == 5 * PLAYBOOKS
