"""LangGraph: a compiled graph whose state has `messages`.

from ace.adapters import langgraph

graph = langgraph.learning(builder.compile(), check=tests_pass)
state = graph.invoke({"messages": [("user", "Fix the flaky login test")]})
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig

from ace.tasks import Task


class Learning:
    """The graph, with the playbook's advice as the first message of each run."""

    def __init__(self, graph: Any, playbook: str, check: Callable[[Any], bool] | None) -> None:
        self.graph, self.playbook, self.check = graph, playbook, check

    def invoke(
        self, state: dict[str, Any], config: RunnableConfig | None = None, **options: Any
    ) -> Any:
        """As the graph's; `check` gets the last state."""
        with self._task(state) as task:
            result = self.graph.invoke(advised(state, task), config, **options)
            self._conclude(task, result)
        return result

    async def ainvoke(
        self, state: dict[str, Any], config: RunnableConfig | None = None, **options: Any
    ) -> Any:
        """As the graph's; `check` gets the last state."""
        async with self._task(state) as task:
            result = await self.graph.ainvoke(advised(state, task), config, **options)
            self._conclude(task, result)
        return result

    def _task(self, state: dict[str, Any]) -> Task:
        """The task: what the user asked last."""
        asked = [m for m in convert_to_messages(state["messages"]) if isinstance(m, HumanMessage)]
        return Task(asked[-1].text if asked else "(no text)", playbook=self.playbook)

    def _conclude(self, task: Task, result: Any) -> None:
        task.hear(result["messages"][-1].text)
        if self.check is not None:
            task.check(bool(self.check(result)))


def learning(
    graph: Any, *, playbook: str = "", check: Callable[[Any], bool] | None = None
) -> Learning:
    """Run a compiled graph as tasks of a playbook."""
    return Learning(graph, playbook, check)


def advised(state: dict[str, Any], task: Task) -> dict[str, Any]:
    """The state with the advice before its messages."""
    if not task.advice:
        return state
    return {**state, "messages": [SystemMessage(task.instructions), *state["messages"]]}
