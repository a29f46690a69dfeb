"""Registers a function as a tool: its types are the schema, its docstring the description."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from time import thread_time
from typing import Any, TypeVar, get_type_hints

from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations
from pydantic import BaseModel, ConfigDict, create_model

from core.errors import Invalid
from core.http.cpu_budget import log_if_over_budget
from core.security.scopes import Principal, Scope
from mcp_bridge.tools.results import ToolResult

F = TypeVar("F", bound=Callable[..., ToolResult])
DROPPED_SCHEMA_KEYS = frozenset({"title", "default"})

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

    def call(
        self, get_principal: Callable[[], Principal], arguments: dict[str, Any]
    ) -> CallToolResult:
        """Authenticate, check scope and arguments, and run the function on a database thread.

        Raises AceError, and pydantic's ValidationError for arguments.
        """
        start, by = thread_time(), get_principal()
        by.require(self.scope)
        result = self.function(by, **self._validate(arguments))
        log_if_over_budget(f"MCP {self.name}", thread_time() - start)
        return CallToolResult(
            content=[TextContent(type="text", text=result.as_text())],
            structured_content=result.model_dump(mode="json"),
            _meta=self.result_meta or None,
        )

    def _validate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        # Models send null for an argument that they leave out.
        sent = {name: value for name, value in arguments.items() if value is not None}
        known = self.arguments.model_fields
        if not sent.keys() <= known.keys():
            raise Invalid(f"Wrong arguments: {self.name} takes only {', '.join(known)}.")
        validated = self.arguments.model_validate(sent)
        return {name: getattr(validated, name) for name in known}


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
    """The schema of arguments in few tokens: without titles, defaults and null.

    Null means left out here, and some providers refuse a list of types.
    """
    kept = {key: value for key, value in schema.items() if key not in DROPPED_SCHEMA_KEYS}
    if "anyOf" in kept:
        (kind,) = (option for option in kept.pop("anyOf") if option != {"type": "null"})
        kept = {**kind, **kept}
    if "properties" in kept:
        kept["properties"] = {n: compact_schema(p) for n, p in kept["properties"].items()}
    return kept
