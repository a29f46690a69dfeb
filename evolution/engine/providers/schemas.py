"""The JSON schema of an answer as strict structured output wants it."""

from functools import cache
from typing import Any

from pydantic import BaseModel

_KEPT = {"type", "enum", "items", "anyOf", "$ref", "properties", "$defs"}


def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Every field required, nothing else allowed, and only keywords that every provider knows.

    What is optional for our reading is demanded of the model: it can leave a field empty.
    """
    return _made(model)


@cache  # of a few classes; making one takes longer than all else that a request needs
def _made(model: type[BaseModel]) -> dict[str, Any]:
    schema: dict[str, Any] = _strict(model.model_json_schema())
    return schema


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _kept(key, value) for key, value in node.items() if key in _KEPT}
    if "properties" in kept:
        kept |= {"required": list(kept["properties"]), "additionalProperties": False}
    return kept


def _kept(key: str, value: Any) -> Any:
    if key in {"properties", "$defs"}:
        return {name: _strict(item) for name, item in value.items()}
    return _strict(value)
