"""Fixtures that need input of the client: by a server request until 2025-11-25, since then by a
result that lists what is required."""

from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts.base import Message, UserMessage
from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ContentBlock,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
)

from tests.conformance.fixtures import prompt, text, tool

Ctx = Context[Any, Any]
Answer = list[ContentBlock] | InputRequiredResult
Question = ElicitRequest | CreateMessageRequest | ListRootsRequest


def form(message: str, **fields: str) -> ElicitRequest:
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in fields.items()},
        "required": list(fields),
    }
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(prompt: str, max_tokens: int) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=text(prompt))
    return CreateMessageRequest(
        params=CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    )


NAME = form("What is your name?", name="string")
CAPITAL = sample("What is the capital of France?", 100)
ROOTS = ListRootsRequest()


def asked(ctx: Ctx, questions: dict[str, Question], state: str | None = None) -> Any:
    """The required input, or None once everything was sent."""
    given = ctx.input_responses or {}
    if all(_fits(question, given.get(key)) for key, question in questions.items()):
        return None
    return InputRequiredResult(input_requests=dict(questions), request_state=state)


def _fits(question: Question, answer: Any) -> bool:
    if not isinstance(question, ElicitRequest):
        return answer is not None
    return isinstance(answer, ElicitResult) and (answer.action != "accept" or bool(answer.content))


@tool
def test_input_required_result_elicitation(ctx: Ctx) -> Answer:
    return asked(ctx, {"user_name": NAME}) or [text("Hello!")]


@tool
def test_input_required_result_sampling(ctx: Ctx) -> Answer:
    return asked(ctx, {"capital_question": CAPITAL}) or [text("The capital of France is Paris.")]


@tool
def test_input_required_result_list_roots(ctx: Ctx) -> Answer:
    return asked(ctx, {"client_roots": ROOTS}) or [text("Roots received")]


@tool
def test_input_required_result_request_state(ctx: Ctx) -> Answer:
    questions: dict[str, Question] = {"confirm": form("Please confirm", ok="boolean")}
    return asked(ctx, questions, state="asked") or [text("state-ok")]


@tool
def test_input_required_result_tampered_state(ctx: Ctx) -> Answer:
    questions: dict[str, Question] = {"confirm": form("Please confirm", ok="boolean")}
    return asked(ctx, questions, state="asked") or [text("state-ok")]


@tool
def test_input_required_result_multiple_inputs(ctx: Ctx) -> Answer:
    greeting = sample("Generate a greeting", 50)
    questions: dict[str, Question] = {
        "user_name": NAME, "greeting": greeting, "client_roots": ROOTS
    }  # fmt: skip
    return asked(ctx, questions, state="asked") or [text("All received")]


@tool
def test_input_required_result_multi_round(ctx: Ctx) -> Answer:
    if ctx.request_state == "second":
        color = form("Step 2: What is your favorite color?", color="string")
        return asked(ctx, {"step2": color}, state="second") or [text("Both steps done")]
    name = form("Step 1: What is your name?", name="string")
    color = form("Step 2: What is your favorite color?", color="string")
    return asked(ctx, {"step1": name}, state="first") or InputRequiredResult(
        input_requests={"step2": color}, request_state="second"
    )


@tool
def test_input_required_result_capabilities(ctx: Ctx) -> Answer:
    declared = ctx.client_capabilities
    questions: dict[str, Question] = {}
    if declared is not None and declared.elicitation is not None:
        questions["user_name"] = NAME
    if declared is not None and declared.sampling is not None:
        questions["capital_question"] = CAPITAL
    return asked(ctx, questions) or [text("Asked what could be asked")]


@prompt
def test_input_required_result_prompt(ctx: Ctx) -> list[Message] | InputRequiredResult:
    question = form("What context should the prompt use?", context="string")
    missing: InputRequiredResult | None = asked(ctx, {"user_context": question})
    return missing or [UserMessage("With this context")]


@tool
def test_missing_capability(ctx: Ctx) -> list[ContentBlock]:
    declared = ctx.client_capabilities
    if declared is None or declared.sampling is None:
        missing: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "This needs sampling.", missing)
    return [text("Sampling is there")]


@tool
async def test_streaming_elicitation(ctx: Ctx) -> Answer:
    await ctx.report_progress(1, 2)
    return asked(ctx, {"user_name": NAME}) or [text("Hello!")]


@tool
async def test_sampling(prompt: str, ctx: Ctx) -> list[ContentBlock]:
    message = SamplingMessage(role="user", content=text(prompt))
    reply = await ctx.session.create_message(
        [message], max_tokens=100, related_request_id=ctx.request_id
    )
    return [text(f"LLM response: {getattr(reply.content, 'text', '')}")]


@tool
async def test_elicitation(message: str, ctx: Ctx) -> list[ContentBlock]:
    words = {"type": "string"}
    properties = {
        "username": {**words, "description": "User's response"},
        "email": {**words, "description": "User's email address"},
    }
    return await _elicit(ctx, "User response", message, properties, ["username", "email"])


@tool
async def test_elicitation_sep1034_defaults(ctx: Ctx) -> list[ContentBlock]:
    states = ["active", "inactive", "pending"]
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": states, "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return await _elicit(ctx, "Elicitation completed", "Please check the defaults", properties)


@tool
async def test_elicitation_sep1330_enums(ctx: Ctx) -> list[ContentBlock]:
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]
    names = ["Option One", "Option Two", "Option Three"]
    properties = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return await _elicit(ctx, "Elicitation completed", "Please choose", properties)


async def _elicit(
    ctx: Ctx,
    message_prefix: str,
    message: str,
    properties: dict[str, Any],
    required: list[str] | None = None,
) -> list[ContentBlock]:
    schema = {"type": "object", "properties": properties, "required": required or []}
    answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return [text(f"{message_prefix}: action={answer.action}, content={answer.content}")]
