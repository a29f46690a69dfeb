"""Registers a function as a tool: its types are the schema, its docstring the description."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from time import thread_time
from typing import Any, TypeVar, get_origin, get_type_hints

from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations
from pydantic import BaseModel, ConfigDict, create_model

from core.errors import Invalid
from core.http.requests import log_if_over_budget
from core.near_misses import understand_fields
from core.security.scopes import Principal, Scope
from mcp_bridge.tools.results import OutcomeRecorded, ToolResult

# From these versions on: tests/clients/scenarios.py tries them.
STRUCTURED_CLIENTS = {"claude-code": (2, 1, 197), "codex-mcp-client": (0, 169, 0)}
F = TypeVar("F", bound=Callable[..., ToolResult])
DROPPED_SCHEMA_KEYS = frozenset({"title", "default", "minimum", "maximum", "anyOf"})

READ_ONLY = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
ADDITIVE = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
IDEMPOTENT = ADDITIVE.model_copy(update={"idempotent_hint": True})
DESTRUCTIVE = ADDITIVE.model_copy(update={"destructive_hint": True})


@dataclass(frozen=True)
class ToolSpec:
    """A tool: a function, its description for the protocol, and the scope that it needs."""

    function: Callable[..., ToolResult]
    scope: Scope
    title: str
    hints: ToolAnnotations
    meta: dict[str, Any] = field(default_factory=dict)
    result_meta: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.function.__name__

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """The parameters of the function except `by`; unknown ones are refused."""
        hints = get_type_hints(self.function, include_extras=True)
        parameters = list(inspect.signature(self.function).parameters.values())[1:]
        fields: dict[str, Any] = {
            p.name: (hints[p.name], ... if p.default is p.empty else p.default) for p in parameters
        }
        return create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)

    @cached_property
    def tool(self) -> Tool:
        """Its entry in `tools/list`; no client shows a model the schema of a result."""
        inputs = compact_schema(self.arguments.model_json_schema())
        return Tool(
            name=self.name,
            title=self.title,
            description=" ".join((inspect.getdoc(self.function) or "").split()),
            input_schema={"properties": {}, **inputs},
            annotations=self.hints,
            _meta=self.meta or None,
        )

    def call(self, by: Principal, arguments: dict[str, Any]) -> CallToolResult:
        """Check scope and arguments, and run the function, on a database thread.

        Raises AceError, and pydantic's ValidationError for arguments.
        """
        start = thread_time()
        by.require(self.scope)
        given, warnings = self._validate(arguments)
        result = self.function(by, **given)
        log_if_over_budget(f"MCP {self.name}", thread_time() - start)
        if isinstance(result, OutcomeRecorded):
            result.warnings[:0] = warnings
        is_once = self.result_meta and reads_structure(by.client)
        text = "See structuredContent." if is_once else result.as_text()
        return CallToolResult(
            content=[TextContent(type="text", text=text)],
            structured_content=result.model_dump(mode="json"),
            _meta=self.result_meta or None,
        )

    def _validate(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """The arguments, near misses of their names understood, and warnings about them.

        An unknown name is refused, except in a report: it must not be lost.
        """
        known = self.arguments.model_fields
        lists = [name for name in known if get_origin(known[name].annotation) is tuple]
        sent, warnings, has_unknown = understand_fields(
            arguments, of=self.name, known=known, lists=lists
        )
        if has_unknown and get_type_hints(self.function)["return"] is not OutcomeRecorded:
            raise Invalid(f"Wrong arguments: {warnings[0]}")
        validated = self.arguments.model_validate(sent)
        return {name: getattr(validated, name) for name in known}, warnings


def reads_structure(client: str) -> bool:
    """True for a client that hands its model the structured half of a result, not the text."""
    name, _, version = client.rpartition(" ")
    known = STRUCTURED_CLIENTS.get(name)
    return known is not None and tuple(map(int, re.findall(r"\d{1,6}", version)[:3])) >= known


# Filled when definitions.py is imported: read it from there.
TOOLS: dict[str, ToolSpec] = {}


def tool(
    title: str,
    scope: Scope,
    hints: ToolAnnotations,
    meta: dict[str, Any] | None = None,
    result_meta: dict[str, Any] | None = None,
) -> Callable[[F], F]:
    """Register the function as a tool; each one needs a scope."""

    def register(function: F) -> F:
        spec = ToolSpec(function, scope, title, hints, meta or {}, result_meta or {})
        TOOLS[spec.name] = spec
        return function

    return register


def compact_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of arguments in few tokens: without titles, defaults, bounds and null.

    Null means left out here, and some providers refuse a list of types.
    """
    if "anyOf" in schema:
        (kind,) = (option for option in schema["anyOf"] if option != {"type": "null"})
        schema = {**kind, **schema}
    kept = {key: value for key, value in schema.items() if key not in DROPPED_SCHEMA_KEYS}
    if "properties" in kept:
        kept["properties"] = {n: compact_schema(p) for n, p in kept["properties"].items()}
    return kept
