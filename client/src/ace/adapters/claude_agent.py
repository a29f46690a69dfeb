"""The Claude Agent SDK.

    from ace.adapters import claude_agent

    async for message in claude_agent.query(prompt="Fix the flaky login test"):
        print(message)

Without a `check` the last test, build or lint run of the session judges it, as in the hooks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, replace
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    Message,
    ResultMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from claude_agent_sdk import query as ask

from ace.tasks import Task
from ace.transcripts import Calls, Facts

KINDS = {TextBlock: "text", ToolUseBlock: "tool_use", ToolResultBlock: "tool_result"}


async def query(
    *,
    prompt: str,
    options: ClaudeAgentOptions | None = None,
    playbook: str = "",
    check: Callable[[str], bool] | None = None,
) -> AsyncIterator[Message]:
    """`claude_agent_sdk.query` with the playbook's advice in the system prompt.

    `check` gets the result's text; an exception, or a result with an error, is a failure.
    """
    given: Any = options.system_prompt if options else None
    if isinstance(given, dict) and given.get("type") != "preset":
        raise TypeError("this form of system_prompt cannot carry advice: pass a string or a preset")
    facts = Facts(client="the Claude Agent SDK")
    calls = Calls(facts)
    async with Task(prompt, playbook=playbook) as task:
        async for message in ask(prompt=prompt, options=advised(options, task.instructions)):
            for part in parts_of(message):
                calls.learn(part)
            if isinstance(message, ResultMessage):
                conclude(task, facts, message, check)
            yield message


def conclude(
    task: Task, facts: Facts, result: ResultMessage, check: Callable[[str], bool] | None
) -> None:
    """The verdict: the check's, else that of the session's own test runs, else of its end."""
    task.used(*(bullet for bullet in facts.cited if f"[{bullet}]" in task.advice))
    task.misled(*(bullet for bullet in facts.misled if f"[{bullet}]" in task.advice))
    task.note(f"Reported by the Claude Agent SDK: {facts.why}")
    if check is not None:
        task.check(bool(check(result.result or "")))
    elif facts.is_conclusive:
        task.check(facts.outcome == "success", signal="test")
    elif result.is_error:
        task.check(False, signal="self_report")


def parts_of(message: Message) -> list[dict[str, Any]]:
    """The blocks of a message, as transcripts have them."""
    content = message.content if isinstance(message, (AssistantMessage, UserMessage)) else ""
    if isinstance(content, str):
        return []
    return [{"type": KINDS[type(b)], **asdict(b)} for b in content if type(b) in KINDS]


def advised(options: ClaudeAgentOptions | None, advice: str) -> ClaudeAgentOptions:
    """The options with the advice at the end of the system prompt."""
    options = options or ClaudeAgentOptions()
    given: Any = options.system_prompt
    if not advice:
        return options
    if isinstance(given, dict) and given.get("type") == "preset":
        appended = "\n\n".join(filter(None, [given.get("append"), advice]))
        return replace(options, system_prompt={**given, "append": appended})
    return replace(options, system_prompt="\n\n".join(filter(None, [given, advice])))
