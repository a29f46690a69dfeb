"""Tasks with a known end: a list to start from, a request, and the list as it should be after it.

The same seed gives the same tasks. `differences` is the check: it compares the whole list.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta

from todo_agent.todos import Todo, TodoStore

VERBS = ("Write", "Send", "Check", "Print", "Order", "Review", "File", "Return", "Renew", "Pack")
THINGS = (
    "the minutes", "the newsletter", "the printer paper", "the library books", "the passport",
    "the train tickets", "the tax form", "the spare keys", "the slides", "the insurance",
    "the garden chairs", "the bicycle", "the lease", "the photo album", "the warranty",
)  # fmt: skip
PEOPLE = ("Anna", "Bilal", "Chen", "Dora", "Emre", "Farah", "Goran", "Hanna")
MATTERS = ("the invoice", "the birthday", "the holiday flat", "the contract", "the school run")
SUBJECTS = ("Lisbon", "the kitchen", "the wedding", "the concert", "the audit", "the move")
SATURDAY = 5


@dataclass(frozen=True)
class Task:
    """`wanted` is the list after it; the id of a new todo does not count."""

    id: str
    kind: str
    request: str
    start: tuple[Todo, ...]
    wanted: tuple[Todo, ...]


def make_tasks(count: int, seed: int) -> list[Task]:
    """That many tasks, every kind in turn."""
    kinds = list(KINDS)
    return [_make(kinds[n % len(kinds)], n, random.Random(f"{seed}-{n}")) for n in range(count)]  # noqa: S311 - no secret


def differences(task: Task, store: TodoStore) -> list[str]:
    """Where the list is not as it should be, in sentences; nothing when the task was done."""
    found = {todo.id: todo for todo in store.all()}
    found_wrong = [_unlike(todo, found[todo.id]) for todo in task.wanted if todo.id in found]
    known = {todo.id for todo in task.start}
    added = [todo for todo in found.values() if todo.id not in known]
    for todo in task.wanted:
        if todo.id not in known:
            twin = next((row for row in added if _title(row) == _title(todo)), None)
            found_wrong.append(
                _unlike(todo, twin) if twin else f'a new todo "{todo.title}" is missing'
            )
            added = [row for row in added if row is not twin]
    found_wrong += [f'todo {row.id} "{row.title}" was added, which was not wanted' for row in added]
    return [line for line in found_wrong if line]


def _unlike(wanted: Todo, found: Todo) -> str:
    name = f'todo {found.id} "{found.title}"'
    if _title(wanted) != _title(found):
        return f'{name}: the title should be "{wanted.title}"'
    if wanted.due != found.due:
        return f'{name}: due is "{found.due}", wanted "{wanted.due}"'
    states = {False: "open", True: "done"}
    if wanted.done != found.done:
        return f"{name} is {states[found.done]}, wanted {states[wanted.done]}"
    return ""


def _title(todo: Todo) -> str:
    return todo.title.casefold().rstrip(".")


def _make(kind: str, number: int, draw: random.Random) -> Task:
    today = date(2026, 1, 5) + timedelta(days=draw.randrange(300))
    start = _filled(draw, draw.randint(14, 24))
    # Every other task of a kind is one that an agent without any advice can do.
    is_plain = number // len(KINDS) % 2 == 1
    words, start, wanted = KINDS[kind](draw, start, today, is_plain)
    request = f"Today is {today:%A}, {today}.\n\n{words}"
    return Task(f"{number + 1:02}-{kind}", kind, request, tuple(start), tuple(wanted))


Made = tuple[str, list[Todo], list[Todo]]


def _filled(draw: random.Random, count: int) -> list[Todo]:
    titles = draw.sample([f"{verb} {thing}" for verb in VERBS for thing in THINGS], count)
    return [Todo(number, title) for number, title in enumerate(titles, start=1)]


def _add(draw: random.Random, start: list[Todo], today: date, is_plain: bool) -> Made:
    """Wanted on the list; often it is there already."""
    title = f"Call {draw.choice(PEOPLE)} about {draw.choice(MATTERS)}"
    if not is_plain:
        start = _with(draw, start, [Todo(0, title)])
        return f'Put "{title}" on my list.', start, start
    return f'Put "{title}" on my list.', start, [*start, Todo(len(start) + 1, title)]


def _schedule(draw: random.Random, start: list[Todo], today: date, is_plain: bool) -> Made:
    """A day of the coming week, which the list wants as a date."""
    todo = draw.choice(start)
    day = next(
        d for n in draw.sample(range(1, 8), 7) if (d := today + timedelta(n)).weekday() < SATURDAY
    )
    wanted = _changed(start, replace(todo, due=str(day)))
    when = str(day) if is_plain else f"the coming {day:%A}"
    return f'"{todo.title}" is due {when}.', start, wanted


def _weekend(draw: random.Random, start: list[Todo], today: date, is_plain: bool) -> Made:
    """A date on a weekend, when nobody works: the list wants the Friday before."""
    todo = draw.choice(start)
    day = today + timedelta(7 + (SATURDAY - today.weekday()) % 7 + draw.randrange(2))
    friday = day - timedelta(day.weekday() - SATURDAY + 1)
    when = friday if is_plain else day
    wanted = _changed(start, replace(todo, due=str(friday)))
    return f'"{todo.title}" is due {when}.', start, wanted


def _complete(draw: random.Random, start: list[Todo], today: date, is_plain: bool) -> Made:
    """One of two todos of the same title, distinguished by the notes."""
    title = f"Call {draw.choice(PEOPLE)}"
    first, second = draw.sample(MATTERS, 2)
    twins = [Todo(0, title, f"about {first}"), Todo(0, title, f"about {second}")]
    start = _with(draw, start, twins[1:] if is_plain else twins)
    meant = next(todo for todo in start if todo.notes == f"about {second}")
    return f'"{title}" about {second} is done.', start, _changed(start, replace(meant, done=True))


def _sweep(draw: random.Random, start: list[Todo], today: date, is_plain: bool) -> Made:
    """Everything about a subject, spread over a list that is longer than one look at it."""
    subject = draw.choice(SUBJECTS)
    about = [Todo(0, f"{verb} the plan", f"for {subject}") for verb in draw.sample(VERBS, 3)]
    start = _with(draw, start[:5] if is_plain else start, about)
    wanted = [replace(todo, done=todo.notes == f"for {subject}") for todo in start]
    return f"Everything for {subject} is done.", start, wanted


def _with(draw: random.Random, start: list[Todo], more: list[Todo]) -> list[Todo]:
    """The list with these in it, in this order, the last one at its end; numbered anew."""
    rows = list(start)
    places = sorted(draw.sample(range(len(rows)), len(more) - 1))
    for shift, (place, todo) in enumerate(zip(places, more, strict=False)):
        rows.insert(place + shift, todo)
    return [replace(todo, id=number) for number, todo in enumerate([*rows, more[-1]], start=1)]


def _changed(start: list[Todo], changed: Todo) -> list[Todo]:
    return [changed if todo.id == changed.id else todo for todo in start]


KINDS: dict[str, Callable[[random.Random, list[Todo], date, bool], Made]] = {
    "add": _add,
    "schedule": _schedule,
    "weekend": _weekend,
    "complete": _complete,
    "sweep": _sweep,
}
