"""The OpenAI Agents SDK.

from ace.adapters import openai_agents

result = await openai_agents.run(agent, "Fix the flaky login test", check=tests_pass)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from agents import Agent, Runner, RunResult

from ace.tasks import Task


async def run(
    agent: Agent[Any],
    prompt: str,
    *,
    playbook: str = "",
    check: Callable[[Any], bool] | None = None,
    **options: Any,
) -> RunResult:
    """`Runner.run` with the playbook's advice in the agent's instructions.

    `check` gets the final output; an exception of the run makes the outcome a failure.
    """
    async with Task(prompt, playbook=playbook) as task:
        result = await Runner.run(advised(agent, task.instructions), prompt, **options)
        task.conclude(result.final_output, check)
    return result


def advised(agent: Agent[Any], advice: str) -> Agent[Any]:
    """A copy of the agent whose instructions end with the advice; they may be a function."""
    given = agent.instructions
    if not callable(given):
        return agent.clone(instructions="\n\n".join(filter(None, [given, advice])))

    async def instructions(context: Any, asked: Any) -> str:
        made = given(context, asked)
        own = await made if inspect.isawaitable(made) else made
        return "\n\n".join(filter(None, [own, advice]))

    return agent.clone(instructions=instructions)
