"""Registers a function as a tool: its types are the schema, its docstring the description."""

import inspect
import json
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from time import thread_time
from typing import Any, TypeVar, get_origin, get_type_hints

from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations
from pydantic import BaseModel, ConfigDict, create_model
from rapidfuzz import fuzz, process

from core.errors import Invalid
from core.http.requests import log_if_over_budget
from core.security.scopes import Principal, Scope
from mcp_bridge.tools.results import OutcomeRecorded, ToolResult

# From these versions on: tests/clients/scenarios.py tries them.
STRUCTURED_CLIENTS = {"claude-code": (2, 1, 197), "codex-mcp-client": (0, 169, 0)}
F = TypeVar("F", bound=Callable[..., ToolResult])
SYNONYMS = {
    "id": "playbook_id",
    "task": "task_description",
    "description": "task_description",
    "result": "outcome",
    "status": "outcome",
    "bullets": "bullet_ids",
    "harmful_bullets": "harmful_bullet_ids",
    "trace": "reasoning_trace",
}
"""What models call an argument that has another name."""
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
        # Models send null for an argument that they leave out.
        sent = {name: value for name, value in arguments.items() if value is not None}
        names = {name: meant_name(name, known) for name in sent if name not in known}
        unknown = [name for name, meant in names.items() if meant is None or meant in sent]
        if unknown:
            shown = ", ".join(re.sub(r"\W", "", name)[:40] for name in unknown[:5])
            text = f"{self.name} takes no {shown}, only {', '.join(known)}."
            if get_type_hints(self.function)["return"] is not OutcomeRecorded:
                raise Invalid(f"Wrong arguments: {text}")
            warnings = [text]
        else:
            warnings = []
        for name, meant in names.items():
            value = sent.pop(name)
            if name not in unknown and meant is not None:
                sent[meant] = value
                warnings.append(f"{re.sub(r'[^A-Za-z0-9_]', '', name)} was taken as {meant}.")
        for name, value in sent.items():
            if isinstance(value, str) and get_origin(known[name].annotation) is tuple:
                sent[name] = words_of_list(value)
                warnings.append(f"{name}: a text was taken as a list.")
        validated = self.arguments.model_validate(sent)
        return {name: getattr(validated, name) for name in known}, warnings


def reads_structure(client: str) -> bool:
    """True for a client that hands its model the structured half of a result, not the text."""
    name, _, version = client.rpartition(" ")
    known = STRUCTURED_CLIENTS.get(name)
    return known is not None and tuple(map(int, re.findall(r"\d{1,6}", version)[:3])) >= known


def meant_name(name: str, known: Collection[str]) -> str | None:
    """The known argument that a misspelt one means, or None."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name[:40]).replace("-", "_").lower()
    meant = SYNONYMS.get(plain, plain)
    near = process.extractOne(meant, list(known), scorer=fuzz.ratio, score_cutoff=80)
    return near[0] if near else None


def words_of_list(text: str) -> list[Any]:
    """The items of a list that was sent as text: as JSON, or with commas or spaces."""
    if text.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            items = json.loads(text)
            if isinstance(items, list):
                return items
    return [word for word in re.split(r"[\s,;\[\]\"']+", text) if word]


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
