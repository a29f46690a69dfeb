"""Chat agents for the orchestrator: anything that takes messages and answers. Pure.

agent = chat_agent(OpenAI(), model="gpt-4o-mini", tools=TOOLS, run_tool=my_function)
agent([{"role": "user", "content": "Plan my week"}]).content        # works without ACE too
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evolution.engine.llm import LLMError
from evolution.sessions.validation import NewMessage, ToolCall

Message = dict[str, Any]
"""As chat completions write it: role, content, tool_calls, tool_call_id."""
MAX_TURNS = 12


@dataclass(frozen=True)
class Reply:
    """An agent's answer. `steps`: intermediate messages and tool calls."""

    content: str
    steps: Sequence[Message] = ()
    tokens: int = 0


class ChatAgent(Protocol):
    """Any agent: a function of yours, or `chat_agent`."""

    def __call__(self, messages: list[Message]) -> Reply: ...


class TooManyTurns(LLMError):
    """The model kept calling tools."""

    def __init__(self) -> None:
        super().__init__("too_many_turns", f"No answer came after {MAX_TURNS} rounds of tools.")


def chat_agent(
    client: Any,
    *,
    model: str,
    tools: Sequence[dict[str, Any]] = (),
    run_tool: Callable[[str, str], str] | None = None,
    **options: Any,
) -> ChatAgent:
    """An agent of an OpenAI client (or one like it): asks, runs tools, asks again.

    `run_tool` gets the tool's name and its arguments as the model wrote them. What the client
    raises goes to the caller; TooManyTurns after 12 rounds.
    """
    fixed = {"model": model, **({"tools": list(tools)} if tools else {}), **options}

    def answer(messages: list[Message]) -> Reply:
        steps: list[Message] = []
        tokens = 0
        for _ in range(MAX_TURNS):
            made = client.chat.completions.create(messages=[*messages, *steps], **fixed)
            tokens += made.usage.total_tokens if made.usage else 0
            message = made.choices[0].message
            if not message.tool_calls or run_tool is None:
                return Reply(message.content or "", steps, tokens)
            steps.append(_tool_request_message(message))
            for call in message.tool_calls:
                done = run_tool(call.function.name, call.function.arguments)
                steps.append({"role": "tool", "tool_call_id": call.id, "content": done})
        raise TooManyTurns

    return answer


def as_new_messages(steps: Sequence[Message]) -> list[NewMessage]:
    """Chat messages as a session stores them; a tool's answer gets the name of its call."""
    names = {c["id"]: c["function"]["name"] for step in steps for c in step.get("tool_calls") or ()}
    return [_session_message(step, names) for step in steps]


def _tool_request_message(message: Any) -> Message:
    """The model's tool calls, for the next request."""
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.function.name, "arguments": call.function.arguments},
        }
        for call in message.tool_calls
    ]
    return {"role": "assistant", "content": message.content, "tool_calls": calls}


def _session_message(step: Message, names: dict[str, str]) -> NewMessage:
    call_id = str(step.get("tool_call_id") or "")
    calls = [
        ToolCall(str(c["id"]), str(c["function"]["name"]), str(c["function"]["arguments"]))
        for c in step.get("tool_calls") or ()
    ]
    return NewMessage(
        role=str(step["role"]),
        content=text_of(step.get("content")),
        tool_calls=calls,
        tool_name=names.get(call_id, str(step.get("name") or "")) if call_id else "",
        tool_call_id=call_id,
    )


def text_of(content: Any) -> str:
    """A message's text; of a list of parts the texts, images and the like left out."""
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if "text" in part)
    return str(content or "")
