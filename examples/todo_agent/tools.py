"""The five tools of the model: their definitions and functions."""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from openai.types.chat import ChatCompletionFunctionToolParam

from todo_agent.todos import SHOWN, NoSuchTodo, TodoStore

TODO = {"type": "string", "description": "Its id, or its title."}


def _tool(
    name: str, description: str, required: list[str], **properties: dict[str, str]
) -> ChatCompletionFunctionToolParam:
    parameters = {"type": "object", "properties": properties, "required": required}
    function: Any = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


TOOLS = [
    _tool(
        "add_todo", "Put a todo on the list.", ["title"],
        title={"type": "string"}, due={"type": "string"}, notes={"type": "string"},
    ),
    _tool("list_todos", f"The first {SHOWN} open todos, oldest first.", []),
    _tool(
        "search_todos", "All open todos with these words in the title or the notes.", ["query"],
        query={"type": "string"},
    ),
    _tool("complete_todo", "Mark a todo as done.", ["todo"], todo=TODO),
    _tool(
        "schedule_todo", "Say when a todo is due.", ["todo", "due"],
        todo=TODO, due={"type": "string"},
    ),
]  # fmt: skip


def _list(store: TodoStore) -> Any:
    todos = store.open()
    return {"todos": [asdict(todo) for todo in todos[:SHOWN]], "open": len(todos)}


CALLS: dict[str, Callable[..., Any]] = {
    "add_todo": lambda store, **sent: asdict(store.add(**sent)),
    "list_todos": _list,
    "search_todos": lambda store, query: [asdict(todo) for todo in store.search(query)],
    "complete_todo": lambda store, todo: asdict(store.complete(todo)),
    "schedule_todo": lambda store, todo, due: asdict(store.schedule(todo, due)),
}


def call_tool(store: TodoStore, name: str, arguments: str) -> str:
    """The tool's answer as JSON; what went wrong is one too, so that the model can mend it."""
    try:
        return json.dumps(CALLS[name](store, **_texts(arguments)))
    except (NoSuchTodo, KeyError, TypeError, ValueError, RecursionError) as error:
        return json.dumps({"error": str(error) or type(error).__name__})


def _texts(arguments: str) -> dict[str, str]:
    """What the model sent, as texts; null is what it left out."""
    sent = json.loads(arguments or "{}")
    if not isinstance(sent, dict) or any(isinstance(value, dict | list) for value in sent.values()):
        raise TypeError("Send an object of texts.")
    return {name: str(value) for name, value in sent.items() if value is not None}
