"""One run of each agent SDK with a scripted model, by `python -m tests.clients.sdk_sessions NAME`.

It runs in the environment of sdks.txt, without Django. The model cites [str-00001] if it has been
given the advice, else nothing; the last line printed is what the model was told.
"""

# ruff: noqa: PLC0415 - an environment has one SDK or all: each session imports its own

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROMPT = "Make the build green"
ADVICE = "[str-00001]"
ANSWER = "I used [str-00001]."


def answer_to(told: str) -> str:
    return ANSWER if ADVICE in told else "I know nothing."


def is_right(answer: Any) -> bool:
    return ADVICE in str(answer)


async def openai_agents() -> str:
    from agents import Agent, Model, ModelResponse, Usage, set_tracing_disabled
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    from ace.adapters import openai_agents as adapter

    told = []

    class Scripted(Model):  # type: ignore[misc]  # not in the environment of mypy
        async def get_response(self, system_instructions: Any, *args: Any, **more: Any) -> Any:
            told.append(system_instructions)
            text = ResponseOutputText(
                text=answer_to(system_instructions), type="output_text", annotations=[]
            )
            message = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **more: Any) -> Any:
            raise NotImplementedError

    set_tracing_disabled(True)
    agent = Agent(name="a", instructions="Be brief.", model=Scripted())
    result = await adapter.run(agent, PROMPT, check=is_right)
    assert result.final_output == ANSWER, result.final_output
    assert agent.instructions == "Be brief."

    async def dynamic(context: Any, agent: Any) -> str:
        return "Be brief."

    await adapter.run(agent.clone(instructions=dynamic), PROMPT, check=is_right)
    return "\n".join(told)


async def pydantic_ai() -> str:
    from pydantic_ai import Agent, ModelResponse, TextPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from ace.adapters import pydantic_ai as adapter

    told = []

    def scripted(messages: Any, info: AgentInfo) -> ModelResponse:
        told.append(info.instructions or "")
        return ModelResponse(parts=[TextPart(answer_to(told[-1]))])

    agent = Agent(FunctionModel(scripted), instructions="Be brief.")
    result = await adapter.run(agent, PROMPT, check=is_right)
    assert result.output == ANSWER, result.output
    await adapter.run(agent, PROMPT, check=is_right, instructions="And polite.")
    assert "And polite." in told[-1]
    return "\n".join(told)


async def langgraph() -> str:
    from langchain_core.messages import AIMessage
    from langgraph.graph import START, MessagesState, StateGraph

    from ace.adapters import langgraph as adapter

    told = []

    def scripted(state: MessagesState) -> dict[str, Any]:
        told.append("Be brief.\n" + "\n".join(message.text for message in state["messages"]))
        return {"messages": [AIMessage(answer_to(told[-1]))]}

    builder = StateGraph(MessagesState)
    builder.add_node("model", scripted)
    builder.add_edge(START, "model")
    graph = adapter.learning(builder.compile(), check=lambda s: is_right(s["messages"][-1].text))
    state = await asyncio.to_thread(graph.invoke, {"messages": [("user", PROMPT)]})
    assert state["messages"][-1].text == ANSWER
    await graph.ainvoke({"messages": [("user", PROMPT)]})
    return "\n".join(told)


async def claude_agent() -> str:
    from claude_agent_sdk import ClaudeAgentOptions, ResultMessage

    from ace.adapters import claude_agent as adapter
    from tests.clients.mock_model import UNITTEST, Call, Say, Step, serve_model

    Path("test_it.py").write_text(UNITTEST.format("True"))
    run_tests = Call("Bash", {"command": "python3 -m unittest test_it"})
    scripts: list[tuple[Any, list[Step]]] = [
        (is_right, [Say(ANSWER)]),
        (None, [run_tests, Say(ANSWER)]),
    ]
    for check, script in scripts:
        with serve_model(script) as model:
            options = ClaudeAgentOptions(
                system_prompt="Be brief.",
                allowed_tools=["Bash"],
                env={"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "sk-mock"},
            )
            async for message in adapter.query(prompt=PROMPT, options=options, check=check):
                if isinstance(message, ResultMessage):
                    assert message.result == ANSWER, message
    return model.everything_read()


SESSIONS: dict[str, Callable[[], Any]] = {
    one.__name__: one for one in (openai_agents, claude_agent, langgraph, pydantic_ai)
}

if __name__ == "__main__":
    print(asyncio.run(SESSIONS[sys.argv[1]]()))
