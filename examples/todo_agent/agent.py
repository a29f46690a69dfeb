"""The agent: a model, the tools and a loop. It knows nothing of playbooks."""

from dataclasses import dataclass, field
from typing import Any

from openai import OpenAI
from openai.types.chat import ChatCompletionMessage

from todo_agent.todos import TodoStore
from todo_agent.tools import TOOLS, call_tool

INSTRUCTIONS = (
    "You keep the todo list of your user. Do what is asked with the tools, and nothing else; do "
    "not ask back. Then say in one sentence what you did."
)
MOST_CALLS = 30


@dataclass
class Run:
    """One request: what was answered, each tool call with its result, and the tokens it took."""

    answer: str = ""
    calls: list[str] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0


def run_agent(
    *, client: OpenAI, model: str, store: TodoStore, request: str, instructions: str = INSTRUCTIONS
) -> Run:
    """Let the model work on the request with the tools. Raises openai.OpenAIError."""
    run = Run()
    messages: list[Any] = [
        {"role": "system", "content": instructions},
        {"role": "user", "content": request},
    ]
    for _ in range(MOST_CALLS):
        message = ask_model(client, model, messages, run, tools=TOOLS)
        if not message.tool_calls:
            run.answer = message.content or ""
            return run
        messages.append(message.model_dump(exclude_none=True))
        messages += [_answered(store, call, run) for call in message.tool_calls]
    run.answer = f"Stopped after {MOST_CALLS} calls of the model."
    return run


def ask_model(
    client: OpenAI, model: str, messages: list[Any], run: Run, **options: Any
) -> ChatCompletionMessage:
    """The model's next message; its tokens are added to the run."""
    completion = client.chat.completions.create(model=model, messages=messages, **options)
    if completion.usage:
        run.prompt_tokens += completion.usage.prompt_tokens
        run.completion_tokens += completion.usage.completion_tokens
    message: ChatCompletionMessage = completion.choices[0].message
    return message


def _answered(store: TodoStore, call: Any, run: Run) -> dict[str, str]:
    """The result of one tool call, as a message; noted in the run."""
    name, arguments = call.function.name, call.function.arguments
    result = call_tool(store, name, arguments)
    run.calls.append(f"{name}({arguments}) -> {result}")
    return {"role": "tool", "tool_call_id": call.id, "content": result}
