"""The tasks: the same for a seed, and a check that sees every difference."""

import json
from contextlib import closing
from dataclasses import replace

import pytest

from todo_agent.tasks import KINDS, Task, differences, make_tasks
from todo_agent.todos import SHOWN, Todo, TodoStore
from todo_agent.tools import TOOLS, call_tool

START = (Todo(1, "Buy milk", "oat"), Todo(2, "Call Anna"), Todo(3, "call anna", "about tea"))


def check(wanted: tuple[Todo, ...], *calls: tuple[str, dict[str, str]]) -> list[str]:
    with closing(TodoStore(start=START)) as store:
        for name, arguments in calls:
            call_tool(store, name, json.dumps(arguments))
        return differences(Task("1", "add", "", START, wanted), store)


def test_a_seed_gives_the_same_tasks_and_another_one_others() -> None:
    assert make_tasks(20, 7) == make_tasks(20, 7)
    assert make_tasks(20, 7)[:5] == make_tasks(5, 7)
    assert not {t.request for t in make_tasks(20, 7)} & {t.request for t in make_tasks(20, 8)}


@pytest.mark.parametrize("seed", range(20))
def test_every_kind_comes_in_turn_and_is_not_done_by_doing_nothing(seed: int) -> None:
    tasks = make_tasks(20, seed)
    assert [task.kind for task in tasks] == list(KINDS) * 4
    for task in tasks:
        assert len({todo.id for todo in task.start}) == len(task.start)
        is_there_already = task.kind == "add" and task.start == task.wanted
        with closing(TodoStore(start=task.start)) as store:
            assert bool(differences(task, store)) != is_there_already, task.id


def test_a_list_that_is_as_wanted_has_no_differences() -> None:
    wanted = (*START[:2], replace(START[2], done=True), Todo(9, "Pack"))
    did = ("complete_todo", {"todo": "3"}), ("add_todo", {"title": "pack."})
    assert check(wanted, *did) == []


@pytest.mark.parametrize(
    ("call", "description"),
    [
        (("add_todo", {"title": "Pack"}), 'todo 4 "Pack" was added, which was not wanted'),
        (("complete_todo", {"todo": "call ANNA"}), 'todo 2 "Call Anna" is done, wanted open'),
        (
            ("schedule_todo", {"todo": "1", "due": "soon"}),
            'todo 1 "Buy milk": due is "soon", wanted ""',
        ),
    ],
)
def test_each_difference_is_described(call: tuple[str, dict[str, str]], description: str) -> None:
    assert check(START, call) == [description]


def test_a_missing_todo_is_described() -> None:
    assert check((*START, Todo(9, "Pack"))) == ['a new todo "Pack" is missing']


def test_the_list_shows_the_first_ones_and_says_how_many_there_are() -> None:
    start = [Todo(number, f"Todo {number}") for number in range(1, 16)]
    with closing(TodoStore(start=start)) as store:
        listed = json.loads(call_tool(store, "list_todos", "{}"))
        found = json.loads(call_tool(store, "search_todos", '{"query": "todo 1"}'))
    assert ([t["id"] for t in listed["todos"]], listed["open"]) == ([*range(1, SHOWN + 1)], 15)
    assert [todo["id"] for todo in found] == [1, *range(10, 16)]


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("complete_todo", '{"todo": "9"}', "There is no todo 9."),
        ("complete_todo", '{"todo": "Pack"}', "There is no open todo 'Pack'."),
        ("add_todo", "{", "Expecting property name"),
        ("add_todo", '{"name": "x"}', "unexpected keyword argument"),
        ("drop_todo", "{}", "drop_todo"),
        ("add_todo", '{"title": ["x"]}', "Send an object of texts."),
        ("add_todo", '["x"]', "Send an object of texts."),
        ("add_todo", '{"title": null}', "missing 1 required positional argument"),
        ("search_todos", '{"query": {}}', "Send an object of texts."),
        ("list_todos", "[" * 100_000, "recursion"),
    ],
    ids=range(10),
)
def test_what_a_tool_cannot_do_is_an_answer(name: str, arguments: str, error: str) -> None:
    with closing(TodoStore(start=START)) as store:
        assert error in json.loads(call_tool(store, name, arguments))["error"]
        assert store.all() == list(START)


def test_a_number_is_taken_as_its_digits() -> None:
    with closing(TodoStore(start=START)) as store:
        call_tool(store, "add_todo", '{"title": 12345678901234567890123, "notes": null}')
        assert store.all()[-1].title == "12345678901234567890123"
        assert json.loads(call_tool(store, "search_todos", '{"query": 123}'))[0]["notes"] == ""


def test_every_tool_that_is_offered_can_be_called() -> None:
    sent = {"title": "Pack", "todo": "1", "query": "milk", "due": "2026-03-06"}
    for tool in TOOLS:
        required = tool["function"]["parameters"]["required"]
        arguments = json.dumps({name: sent[name] for name in required})  # type: ignore[attr-defined]  # a list of names
        with closing(TodoStore(start=START)) as store:
            assert "error" not in json.loads(call_tool(store, tool["function"]["name"], arguments))
