"""Our server with the suite's fixtures beside its own tools; prompts and resources are theirs."""

from collections.abc import Callable
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.types import (
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmptyResult,
    RequestParams,
    SetLevelRequestParams,
    SubscribeRequestParams,
    Tool,
    UnsubscribeRequestParams,
)

from mcp_bridge.server import build_server
from tests.conformance import client_requests
from tests.conformance.fixtures import fixtures

assert client_requests  # it adds to the fixtures
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resource_templates",
}
NAMED = ("tools/call", "prompts/get", "resources/read")
# To be listed as it stands, with every keyword.
JSON_SCHEMA_TOOL = Tool(
    name="json_schema_2020_12_tool",
    description="Tool with JSON Schema 2020-12 features",
    input_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {
            "properties": {"contactMethod": {"const": "phone"}},
            "required": ["contactMethod"],
        },
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)
MORE = {"tools/list": [JSON_SCHEMA_TOOL]}


def build_fixtures_server() -> Server[str]:
    """Lists contain both; a name of the suite goes to its fixture, every other to our server."""
    ours = build_server()
    theirs = fixtures._lowlevel_server  # MCPServer has no public way to its requests
    states = RequestStateSecurity.ephemeral()
    ours.middleware.append(RequestStateBoundary(states, default_audience="fixtures"))
    ours.get_tool_input_schema = _either_schema(ours, theirs)
    for method, field in LISTS.items():
        _join_lists(ours, theirs, method, field)
    for method in NAMED:
        _send_on(ours, theirs, method)
    ours.add_request_handler("completion/complete", CompleteRequestParams, _complete)
    for method, params in {
        "logging/setLevel": SetLevelRequestParams,
        "resources/subscribe": SubscribeRequestParams,
        "resources/unsubscribe": UnsubscribeRequestParams,
    }.items():
        ours.add_request_handler(method, params, _accept)
    return ours


def _join_lists(ours: Server[str], theirs: Server[Any], method: str, field: str) -> None:
    mine, other = ours.get_request_handler(method), theirs.get_request_handler(method)
    assert other is not None
    if mine is None:
        ours.add_request_handler(method, other.params_type, other.handler)
        return

    async def both(context: Any, params: Any) -> Any:
        first: Any = await mine.handler(context, params)
        second = await other.handler(context, params)
        found = [*getattr(first, field), *getattr(second, field), *MORE.get(method, [])]
        return first.model_copy(update={field: found})

    ours.add_request_handler(method, mine.params_type, both)


def _either_schema(ours: Server[str], theirs: Server[Any]) -> Callable[[str], Any]:
    both = (ours.get_tool_input_schema, theirs.get_tool_input_schema)

    def schema_of(name: str) -> Any:
        return next((found for lookup in both if lookup and (found := lookup(name))), None)

    return schema_of


def _send_on(ours: Server[str], theirs: Server[Any], method: str) -> None:
    mine, other = ours.get_request_handler(method), theirs.get_request_handler(method)
    assert other is not None
    if mine is None:
        ours.add_request_handler(method, other.params_type, other.handler)
        return

    async def either(context: Any, params: Any) -> Any:
        theirs_to_answer = params.name.startswith("test_")
        return await (other if theirs_to_answer else mine).handler(context, params)

    ours.add_request_handler(method, mine.params_type, either)


async def _complete(context: Any, params: CompleteRequestParams) -> CompleteResult:
    return CompleteResult(completion=Completion(values=["paris", "park"], total=2))


async def _accept(context: Any, params: RequestParams) -> EmptyResult:
    return EmptyResult()
