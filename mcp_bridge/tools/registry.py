"""Registers a function as a tool: its types are the schema, its docstring the description."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, get_type_hints

from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations
from pydantic import BaseModel, ConfigDict, create_model

from core.errors import Invalid
from core.security.scopes import Principal, Scope
from mcp_bridge.tools.results import ToolResult

F = TypeVar("F", bound=Callable[..., ToolResult])
DROPPED_SCHEMA_KEYS = frozenset({"title", "default", "$defs", "$ref"})

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
        """Its entry in `tools/list`."""
        result: type[ToolResult] = get_type_hints(self.function)["return"]
        inputs = _without_null_types(compact_schema(self.arguments.model_json_schema()))
        outputs = _names_and_types(compact_schema(result.model_json_schema(mode="serialization")))
        return Tool(
            name=self.name,
            title=self.title,
            description=" ".join((inspect.getdoc(self.function) or "").split()),
            input_schema={"properties": {}, **inputs},
            output_schema=outputs,
            annotations=self.hints,
            _meta=self.meta or None,
        )

    def call(
        self, get_principal: Callable[[], Principal], arguments: dict[str, Any]
    ) -> CallToolResult:
        """Authenticate, check scope and arguments, and run the function on a database thread.

        Raises AceError, and pydantic's ValidationError for arguments.
        """
        by = get_principal()
        by.require(self.scope)
        result = self.function(by, **self._validate(arguments))
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


def compact_schema(
    schema: dict[str, Any], definitions: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The schema in few tokens: without titles, defaults, references and `anyOf`."""
    definitions = definitions or schema.get("$defs", {})
    if "$ref" in schema:
        referenced = definitions[schema["$ref"].rpartition("/")[2]]
        schema = {**referenced, **schema}
    kept = {key: value for key, value in schema.items() if key not in DROPPED_SCHEMA_KEYS}
    if "anyOf" in kept:
        kept = _flatten_nullable(kept)
    kept.pop("format", None)
    if isinstance(kept.get("items"), dict):
        kept["items"] = compact_schema(kept["items"], definitions)
    if "properties" in kept:
        # The docstring of a class is for readers of the code.
        kept.pop("description", None)
        kept["properties"] = {
            n: compact_schema(p, definitions) for n, p in kept["properties"].items()
        }
    return kept


def _flatten_nullable(schema: dict[str, Any]) -> dict[str, Any]:
    (kind,) = (option for option in schema.pop("anyOf") if option != {"type": "null"})
    return {**kind, "type": [kind["type"], "null"], **schema}


def _without_null_types(schema: dict[str, Any]) -> dict[str, Any]:
    """Null means left out here, and some providers refuse a list of types."""
    for argument in schema["properties"].values():
        if isinstance(argument["type"], list):
            argument["type"] = argument["type"][0]
    return schema


def _names_and_types(schema: dict[str, Any]) -> dict[str, Any]:
    """A result always has all its properties, and their names say what they are.

    `required` and descriptions would be a fifth of `tools/list`.
    """
    kept = {key: value for key, value in schema.items() if key not in {"required", "description"}}
    if "properties" in kept:
        kept["properties"] = {n: _names_and_types(p) for n, p in kept["properties"].items()}
    if "items" in kept:
        kept["items"] = _names_and_types(kept["items"])
    return kept
