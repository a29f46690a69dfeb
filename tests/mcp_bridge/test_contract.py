"""The contract of the MCP server: tools, schemas, instructions; without a database."""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from jsonschema import Draft202012Validator
from mcp.shared.inbound import X_MCP_HEADER_KEY
from mcp.types import Tool
from rs_bpe.bpe import openai

from core.security.scopes import KEY_SCOPES, Scope
from mcp_bridge.server import INSTRUCTIONS
from mcp_bridge.tools.definitions import TOOLS

pytestmark = pytest.mark.skipif(connection.vendor != "sqlite", reason="no database changes this")

SCOPES = {
    "list_playbooks": Scope.READ,
    "get_playbook": Scope.READ,
    "report_outcome": Scope.REPORT,
    "next_case": Scope.REPORT,
    "trigger_evolution": Scope.EVOLVE,
    "get_evolution_status": Scope.READ,
    "list_evolutions": Scope.READ,
    "list_versions": Scope.READ,
    "create_playbook": Scope.WRITE,
    "clone_playbook": Scope.WRITE,
    "rollback_playbook": Scope.WRITE,
}


def listed() -> list[Tool]:
    return [exposed.tool for exposed in TOOLS.values()]


def wire(tools: list[Tool]) -> list[dict[str, Any]]:
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]


def properties(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every property of a schema, those of its lists' items included."""
    for field in schema.get("properties", {}).values():
        yield field
        yield from properties(field.get("items", {}))


every_tool = pytest.mark.parametrize("tool", listed(), ids=lambda tool: tool.name)


def test_the_tools_and_their_scopes_are_the_contract() -> None:
    assert {name: exposed.scope for name, exposed in TOOLS.items()} == SCOPES
    assert set(SCOPES.values()) <= set(KEY_SCOPES)


@pytest.mark.parametrize("encoding", [openai.o200k_base, openai.cl100k_base])
def test_the_list_of_tools_fits_its_budget_of_tokens(encoding: Any) -> None:
    sent = json.dumps({"tools": wire(listed())}, separators=(",", ":"), ensure_ascii=False)
    assert encoding().count(sent) <= 2_300


def test_the_instructions_fit_and_start_with_the_rule() -> None:
    assert len(INSTRUCTIONS) < 2000
    first = INSTRUCTIONS[:700]
    assert first.index("get_playbook") < first.index("report_outcome")
    assert "serving_id" in first


@every_tool
def test_every_tool_has_a_title_and_all_four_hints(tool: Tool) -> None:
    assert tool.title
    hints = tool.annotations
    assert hints is not None
    required = (hints.read_only_hint, hints.destructive_hint)
    assert None not in (*required, hints.idempotent_hint, hints.open_world_hint)


@every_tool
def test_every_parameter_is_described_and_others_are_refused(tool: Tool) -> None:
    schema = tool.input_schema
    assert all(field["description"] for field in properties(schema))
    assert all(isinstance(field["type"], str) for field in properties(schema))
    assert schema["additionalProperties"] is False
    assert "by" not in schema["properties"]


@every_tool
def test_every_tool_says_when_to_call_it(tool: Tool) -> None:
    assert 80 < len(tool.description or "") < 1000
    # No client shows a model the schema of a result.
    assert tool.output_schema is None


@every_tool
def test_the_schema_is_valid_and_refers_to_nothing(tool: Tool) -> None:
    Draft202012Validator.check_schema(tool.input_schema)
    assert "$ref" not in json.dumps(tool.input_schema)
    assert X_MCP_HEADER_KEY not in json.dumps(tool.input_schema)


@every_tool
def test_every_tool_body_is_at_most_twelve_lines(tool: Tool) -> None:
    source = textwrap.dedent(inspect.getsource(TOOLS[tool.name].function))
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    last = function.body[-1].end_lineno or 0
    assert last - (function.body[0].end_lineno or 0) <= 13


def test_only_a_rollback_is_marked_destructive() -> None:
    destructive = {
        tool.name for tool in listed() if tool.annotations and tool.annotations.destructive_hint
    }
    assert destructive == {"rollback_playbook"}
