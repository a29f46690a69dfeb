"""What the server tells about itself, without a database."""

import ast
import asyncio
import inspect
import textwrap
from typing import Any

import pytest
from mcp.types import Tool

from accounts.scopes import KEY_SCOPES, Scope
from mcp_bridge.server import INSTRUCTIONS, build_server
from mcp_bridge.tools import TOOLS

SCOPES = {
    "list_playbooks": Scope.READ,
    "get_playbook": Scope.READ,
    "report_outcome": Scope.WRITE,
    "trigger_evolution": Scope.EVOLVE,
    "get_evolution_status": Scope.READ,
    "list_evolutions": Scope.READ,
    "list_versions": Scope.READ,
    "create_playbook": Scope.WRITE,
    "clone_playbook": Scope.WRITE,
    "rollback_playbook": Scope.WRITE,
}


def listed() -> list[Tool]:
    return asyncio.run(build_server().list_tools())


def wire(tools: list[Tool]) -> list[dict[str, Any]]:
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]


every_tool = pytest.mark.parametrize("tool", listed(), ids=lambda tool: tool.name)


def test_the_tools_and_their_scopes_are_the_contract() -> None:
    assert {name: exposed.scope for name, exposed in TOOLS.items()} == SCOPES
    assert set(SCOPES.values()) <= set(KEY_SCOPES)


def test_the_list_of_tools_is_the_same_each_time() -> None:
    assert wire(listed()) == wire(listed())


def test_the_instructions_fit_and_begin_with_the_rule() -> None:
    assert len(INSTRUCTIONS) <= 2000
    first = INSTRUCTIONS[:700]
    assert first.index("get_playbook") < first.index("report_outcome")
    assert "serving_id" in first


@every_tool
def test_every_tool_has_a_title_and_all_four_hints(tool: Tool) -> None:
    assert tool.title
    hints = tool.annotations
    assert hints is not None
    told = (hints.read_only_hint, hints.destructive_hint)
    assert None not in (*told, hints.idempotent_hint, hints.open_world_hint)


@every_tool
def test_every_parameter_is_described_and_no_other_is_taken(tool: Tool) -> None:
    properties = tool.input_schema["properties"]
    assert all(len(shape["description"]) > 20 for shape in properties.values())
    assert tool.input_schema["additionalProperties"] is False
    assert "by" not in properties


@every_tool
def test_every_tool_says_when_to_call_it_and_what_it_returns(tool: Tool) -> None:
    assert 120 < len(tool.description or "") < 1000
    assert tool.output_schema is not None
    assert tool.output_schema["type"] == "object"


@every_tool
def test_every_tool_body_is_at_most_twelve_lines(tool: Tool) -> None:
    source = textwrap.dedent(inspect.getsource(TOOLS[tool.name].function))
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    last = function.body[-1].end_lineno or 0
    assert last - (function.body[0].end_lineno or 0) <= 13


def test_only_a_rollback_is_called_destructive() -> None:
    told = {
        tool.name for tool in listed() if tool.annotations and tool.annotations.destructive_hint
    }
    assert told == {"rollback_playbook"}
