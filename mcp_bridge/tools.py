"""The ten tools. Each is a function, its types and a docstring that a model reads.

`by` is who calls: it comes from the credential, never from an argument.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from mcp.types import CallToolResult, TextContent, ToolAnnotations

from accounts.scopes import Principal, Scope
from evolution import services as evolution
from evolution.models import EvolutionJob
from mcp_bridge import schemas as s
from playbooks import services as playbooks
from playbooks.models import Playbook, Version

F = TypeVar("F", bound=Callable[..., Any])

# Claude Code writes longer results to a file. A playbook of 100 KB comes twice, once escaped.
LONG = {"anthropic/maxResultSizeChars": 400_000}
# The tools of the rule stay in front of the model instead of behind a tool search.
FIRST = {"anthropic/alwaysLoad": True}
MAX_LISTED = 200

READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
ADDS = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
STARTS = ADDS.model_copy(update={"idempotent_hint": True})
REPLACES = ADDS.model_copy(update={"destructive_hint": True})


@dataclass(frozen=True)
class Exposed:
    """A function with what the protocol tells about it, and the scope that it needs."""

    function: Callable[..., Any]
    scope: Scope
    title: str
    hints: ToolAnnotations
    meta: dict[str, Any] = field(default_factory=dict)

    def run(self, identify: Callable[[], Principal], arguments: dict[str, Any]) -> Any:
        """Find out who calls, check the scope, do it: on one database thread."""
        by = identify()
        by.require(self.scope)
        return self.function(by, **arguments)


TOOLS: dict[str, Exposed] = {}


def tool(
    title: str, scope: Scope, hints: ToolAnnotations, meta: dict[str, Any] | None = None
) -> Callable[[F], F]:
    """Offer the function to agents; there is no way to offer one without a scope."""

    def register(function: F) -> F:
        TOOLS[function.__name__] = Exposed(function, scope, title, hints, meta or {})
        return function

    return register


@tool("List playbooks", Scope.READ, READS, FIRST)
def list_playbooks(
    by: Principal, include_starters: s.IncludeStarters = True
) -> list[s.PlaybookItem]:
    """List the playbooks that you can read, most recently changed first.

    Call this at the start of a task when you do not know yet which playbook fits. Choose by name
    and description, then call get_playbook with its `id`. If only a starter fits, call
    clone_playbook once and use the clone from then on, so that your reports can improve it. If
    none fits, go on without one, or make one with create_playbook when such tasks will come again.
    At most 200 are listed.
    """
    rows = Playbook.objects.for_user(by, include_starters=include_starters).active().with_counts()
    return [s.PlaybookItem.of(row) for row in rows[:MAX_LISTED]]


@tool("Read a playbook", Scope.READ, READS, FIRST | LONG)
def get_playbook(
    by: Principal,
    playbook_id: s.PlaybookId,
    section: s.SectionName = "",
    version: s.AnyVersion = None,
) -> Annotated[CallToolResult, s.PlaybookText]:
    """Read the advice of a playbook. Call this before you start a task that it is about.

    `content` holds short bullets under section headings; each starts with its id, such as
    [str-00001]. Apply the bullets that fit the task; they are advice from earlier attempts, and
    what your user tells you comes first. Remember the ids of bullets that helped or misled you
    and keep `serving_id`: pass both to report_outcome when the task is done. Reading changes
    nothing; read again for a new task, because playbooks evolve.
    """
    playbook = Playbook.objects.for_user(by, include_starters=True).fetch(playbook_id)
    reading = playbooks.read_playbook(playbook=playbook, by=by, section=section, version=version)
    return CallToolResult(
        content=[TextContent(type="text", text=reading.content)],
        structured_content=s.PlaybookText.of(reading).model_dump(mode="json"),
        _meta=LONG,
    )


@tool("Report an outcome", Scope.WRITE, ADDS, FIRST)
def report_outcome(
    by: Principal,
    playbook_id: s.PlaybookId,
    task_description: s.TaskDescription,
    outcome: s.Result,
    reasoning_trace: s.Trace = "",
    notes: s.Notes = "",
    bullet_ids: s.CitedBullets = (),
    serving_id: s.ServingId = "",
    signal: s.Signal = "self_report",
    idempotency_key: s.IdempotencyKey = "",
) -> s.OutcomeRecorded:
    """Report how a task went. Call this once after every task for which you read a playbook.

    Report failures and partial results too: the playbook learns from what went wrong. Say in
    `notes` what would have helped. Cite in `bullet_ids` the bullets that you used or that misled
    you, and pass the `serving_id` that get_playbook gave you. Leave secrets and personal data out:
    what you report may become advice that other agents read. Nothing more is to be done with the
    result; when enough outcomes are pending, the playbook evolves by itself.
    """
    report = evolution.report_outcome(
        playbook=Playbook.objects.for_user(by).fetch(playbook_id),
        by=by,
        task_description=task_description,
        outcome=outcome,
        reasoning_trace=reasoning_trace,
        notes=notes,
        bullet_ids=list(bullet_ids),
        serving_id=serving_id,
        signal=signal,
        idempotency_key=idempotency_key,
    )
    return s.OutcomeRecorded.of(report)


@tool("Start an evolution", Scope.EVOLVE, STARTS)
def trigger_evolution(by: Principal, playbook_id: s.PlaybookId) -> s.EvolutionTriggered:
    """Turn the pending outcomes of a playbook into a new version now.

    Seldom needed: report_outcome starts an evolution by itself when enough outcomes are pending.
    Call this when your user asks for it. It returns at once; an evolution that is already queued
    or running is returned with `is_new` false. Follow it with get_evolution_status and the
    `job_id`; when it is completed, read the new version with get_playbook.
    """
    playbook = Playbook.objects.for_user(by).fetch(playbook_id)
    return s.EvolutionTriggered.of(evolution.trigger_evolution(playbook=playbook, by=by))


@tool("Follow an evolution", Scope.READ, READS)
def get_evolution_status(by: Principal, job_id: s.JobId) -> s.EvolutionState:
    """Say where one evolution stands.

    `status` is queued, running, completed, failed or cancelled. While it is queued or running ask
    again after some seconds, not more often; an evolution takes from seconds to some minutes.
    `error_message` says why it failed, or what a queued one waits for: tell your user.
    """
    return s.EvolutionState.of(EvolutionJob.objects.for_user(by).fetch(job_id))


@tool("List evolutions", Scope.READ, READS)
def list_evolutions(
    by: Principal, playbook_id: s.PlaybookId, limit: s.Limit = 20
) -> list[s.EvolutionItem]:
    """List the evolutions of one of your playbooks, newest first.

    Use it to see what became of reported outcomes, or to find the `job_id` of an evolution that
    started by itself. `to_version` is the version that came of it.
    """
    playbook = Playbook.objects.for_user(by).fetch(playbook_id)
    jobs = EvolutionJob.objects.for_user(by).filter(playbook=playbook).order_by("-created_at")
    return [
        s.EvolutionItem.of(j) for j in jobs.select_related("from_version", "to_version")[:limit]
    ]


@tool("List versions", Scope.READ, READS)
def list_versions(
    by: Principal, playbook_id: s.PlaybookId, limit: s.Limit = 20
) -> list[s.VersionItem]:
    """List the versions of a playbook, newest first, with the reason for each.

    Use it before rollback_playbook, or to find an older `version` to read with get_playbook.
    """
    playbook = Playbook.objects.for_user(by, include_starters=True).fetch(playbook_id)
    versions = Version.objects.filter(playbook=playbook).order_by("-number")
    return [s.VersionItem.of(version) for version in versions[:limit]]


@tool("Create a playbook", Scope.WRITE, ADDS)
def create_playbook(
    by: Principal, name: s.NewName, description: s.Description = ""
) -> s.PlaybookMade:
    """Create an empty playbook of your own for a kind of task that will come again.

    Call list_playbooks first: cloning a starter that fits is a better beginning than an empty
    one. Report outcomes with the returned `id`; the first evolution writes the first bullets.
    """
    playbook = playbooks.create_playbook(by=by, name=name, description=description)
    return s.PlaybookMade.of(playbook)


@tool("Clone a playbook", Scope.WRITE, ADDS)
def clone_playbook(
    by: Principal, playbook_id: s.PlaybookId, name: s.CloneName = ""
) -> s.PlaybookMade:
    """Copy a starter, or a playbook of yours, into a new playbook that you own.

    Do this once for a starter that fits your work, then read and report with the returned `id`.
    Every call makes another copy. Outcomes and older versions stay with the original.
    """
    playbook = Playbook.objects.for_user(by, include_starters=True).fetch(playbook_id)
    return s.PlaybookMade.of(playbooks.clone_playbook(playbook=playbook, by=by, name=name))


@tool("Roll back a playbook", Scope.WRITE, REPLACES)
def rollback_playbook(
    by: Principal, playbook_id: s.PlaybookId, version: s.VersionNumber
) -> s.PlaybookMade:
    """Make an older version current again for every agent that reads this playbook.

    Call this only when your user asks for it. The old text is published under a new version
    number, which is returned; no version is deleted, so a rollback can itself be rolled back.
    Find the number with list_versions.
    """
    playbook = Playbook.objects.for_user(by).fetch(playbook_id)
    made = playbooks.rollback_playbook(playbook=playbook, by=by, number=version)
    return s.PlaybookMade.of(playbook, made)
