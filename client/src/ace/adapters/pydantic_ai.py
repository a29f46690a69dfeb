"""Pydantic AI.

from ace.adapters import pydantic_ai

result = await pydantic_ai.run(agent, "Fix the flaky login test", check=tests_pass)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_ai import Agent, AgentRunResult

from ace.tasks import Task


async def run(
    agent: Agent[Any, Any],
    prompt: str,
    *,
    playbook: str = "",
    check: Callable[[Any], bool] | None = None,
    **options: Any,
) -> AgentRunResult[Any]:
    """`agent.run` with the playbook's advice as instructions beside the agent's own.

    `check` gets the output; an exception of the run makes the outcome a failure.
    """
    async with Task(prompt, playbook=playbook) as task:
        given = options.pop("instructions", None)
        own = [] if given is None else given if isinstance(given, list) else [given]
        advice = [task.instructions] if task.advice else []
        result = await agent.run(prompt, instructions=[*own, *advice], **options)
        task.conclude(result.output, check)
    return result
