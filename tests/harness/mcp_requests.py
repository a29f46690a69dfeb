"""Every way in which a message can name a thing of somebody, for the matrix of who reaches it."""

from dataclasses import dataclass
from typing import Any

Request = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Target:
    """A playbook and one of its evolutions, as a caller would name them."""

    playbook_id: str
    name: str
    job_id: str


def tool(name: str, /, **arguments: Any) -> Request:
    return "tools/call", {"name": name, "arguments": arguments}


def prompt(name: str, /, **arguments: str) -> Request:
    return "prompts/get", {"name": name, "arguments": arguments}


def completion(ref: dict[str, str], name: str, value: str, **chosen: str) -> Request:
    params: dict[str, Any] = {"ref": ref, "argument": {"name": name, "value": value}}
    return "completion/complete", params | ({"context": {"arguments": chosen}} if chosen else {})


def in_prompt(name: str) -> dict[str, str]:
    return {"type": "ref/prompt", "name": name}


def in_template(uri: str) -> dict[str, str]:
    return {"type": "ref/resource", "uri": uri}


def on_tools(thing: Target) -> list[Request]:
    pk = {"playbook_id": thing.playbook_id}
    report = {"task_description": "Build", "outcome": "success"}
    return [
        tool("get_playbook", **pk),
        tool("get_playbook", **pk, version=1, section="str", max_tokens=50),
        tool("get_playbook", name=thing.name),
        tool("report_outcome", **pk, **report),
        tool("trigger_evolution", **pk),
        tool("get_evolution_status", job_id=thing.job_id),
        tool("list_evolutions", **pk),
        tool("list_versions", **pk),
        tool("clone_playbook", **pk),
        tool("rollback_playbook", **pk, version=1),
    ]


def on_others(thing: Target) -> list[Request]:
    """Resources, prompts and completions."""
    prompts = ("start_task", "finish_task", "review_playbook")
    one, numbered = "playbook://{id}", "playbook://{id}/versions/{n}"
    return [
        ("resources/read", {"uri": f"playbook://{thing.playbook_id}"}),
        ("resources/read", {"uri": f"playbook://{thing.playbook_id}/versions/1"}),
        *(prompt(name, playbook=thing.playbook_id) for name in prompts),
        *(prompt(name, playbook=thing.name) for name in prompts),
        *(completion(in_prompt(name), "playbook", thing.name) for name in prompts),
        completion(in_template(one), "id", thing.playbook_id),
        completion(in_template(numbered), "id", thing.playbook_id[:8]),
        completion(in_template(numbered), "n", "", id=thing.playbook_id),
    ]


def all_requests(thing: Target) -> list[Request]:
    return [*on_tools(thing), *on_others(thing)]
