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
        tool("next_case", **pk),
        tool("list_evolutions", **pk),
        tool("list_versions", **pk),
        tool("clone_playbook", **pk),
        tool("rollback_playbook", **pk, version=1),
    ]
