"""Argument completion of prompts and resources: the caller's own playbooks and the starters."""

from collections.abc import Iterable

from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    PromptReference,
    ResourceTemplateReference,
)

from core.errors import NotFound
from core.security.scopes import Principal, Scope
from mcp_bridge.prompts.definitions import PROMPTS
from mcp_bridge.protocol.auth import RequestContext
from mcp_bridge.protocol.dispatch import run_for_caller
from mcp_bridge.resources import PLAYBOOK_URI, SCOPE, VERSION_URI
from playbooks.models import Playbook, Version

# The protocol's limit of one response; the newest playbooks are searched.
MAX_VALUES = 100
MAX_CANDIDATES = 1_000
OUTCOMES = ("success", "failure", "partial")


async def complete(context: RequestContext, params: CompleteRequestParams) -> CompleteResult:
    """Values that complete the typed text; -32602 for an argument without completion."""
    name, typed = params.argument.name, params.argument.value
    scope = _scope_of(params.ref, name)
    chosen = (params.context.arguments if params.context else None) or {}

    def suggest(by: Principal) -> CompleteResult:
        by.require(scope)
        found = list(dict.fromkeys(_suggestions(by, params.ref, name, typed, chosen)))
        return CompleteResult(
            completion=Completion(
                values=found[:MAX_VALUES], total=len(found), has_more=len(found) > MAX_VALUES
            )
        )

    return await run_for_caller(context, suggest)


def _scope_of(ref: PromptReference | ResourceTemplateReference, argument: str) -> Scope:
    """The scope of the prompt or resource. Raises MCPError for an unknown one or its argument."""
    if isinstance(ref, PromptReference):
        spec = PROMPTS.get(ref.name)
        if spec is not None and argument in spec.parameters:
            return spec.scope
    elif argument in {PLAYBOOK_URI: {"id"}, VERSION_URI: {"id", "n"}}.get(ref.uri, set()):
        return SCOPE
    raise MCPError(INVALID_PARAMS, "Nothing is offered with this name and this argument.")


def _suggestions(
    by: Principal,
    ref: PromptReference | ResourceTemplateReference,
    argument: str,
    typed: str,
    chosen: dict[str, str],
) -> Iterable[str]:
    if argument == "outcome":
        return [word for word in OUTCOMES if word.startswith(typed.lower())]
    if argument == "n":
        return _numbers(by, chosen.get("id", ""), typed)
    if argument not in {"playbook", "id"}:
        return []
    include_starters = not (isinstance(ref, PromptReference) and ref.name == "finish_task")
    return _playbooks(by, typed, names=argument == "playbook", include_starters=include_starters)


def _playbooks(by: Principal, typed: str, *, names: bool, include_starters: bool) -> Iterable[str]:
    """Names or ids of playbooks whose name or id matches the typed text."""
    rows = Playbook.objects.for_user(by, include_starters=include_starters).active()
    wanted = typed.strip().casefold()
    for pk, name in rows.order_by("-updated_at").values_list("pk", "name")[:MAX_CANDIDATES]:
        if wanted in name.casefold() or str(pk).startswith(wanted):
            yield name if names else str(pk)


def _numbers(by: Principal, pk: str, typed: str) -> Iterable[str]:
    try:
        playbook = Playbook.objects.for_user(by, include_starters=True).fetch(pk)
    except NotFound:
        return []
    numbers = Version.objects.filter(playbook=playbook).order_by("-number")
    found = (str(number) for number in numbers.values_list("number", flat=True)[:MAX_CANDIDATES])
    return [number for number in found if number.startswith(typed.strip())]
