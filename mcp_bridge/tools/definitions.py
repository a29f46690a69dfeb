"""The eleven tools. Each is a function, its types and a docstring that a model reads.

`by` is the caller, from the credential, never from an argument.
"""

from datetime import datetime
from typing import TypeVar

from django.core import signing
from django.db.models import Model, Q, QuerySet

from core.errors import Invalid
from core.security.scopes import Principal, Scope
from core.sql.querysets import CompiledLookup
from evolution.evidence.provenance import outcome_with_edits
from evolution.jobs import lifecycle
from evolution.models import EvolutionJob
from evolution.outcomes import cases, reporting
from mcp_bridge.tools import arguments as a
from mcp_bridge.tools import results as r
from mcp_bridge.tools.registry import ADDITIVE, DESTRUCTIVE, IDEMPOTENT, READ_ONLY, TOOLS, tool
from playbooks.models import Playbook, Version
from playbooks.services import creation, rollback
from playbooks.services.reading import (
    find_playbook,
    rank_playbooks,
    read_playbook,
    refuse_taken_name,
)

__all__ = ["TOOLS"]

M = TypeVar("M", bound=Model)
MAX_CURSOR_LENGTH = 1_000
# Claude Code writes longer results to a file. A result holds a playbook of 100 KB twice.
LONG_RESULT = {"anthropic/maxResultSizeChars": 400_000}
# Codex cuts the middle out of a result near 10,000 tokens; better to leave out the least useful.
CODEX_TOKENS = 9_000
NO_MATCH = "No playbook matches all words. These come closest."
READ_OF_PLAYBOOK = ("name", "owner", "source", "status", "current_version", "open_trial")
READ_OF_VERSION = ("playbook", "number", "text", "token_count", "seal")
# With its current text; starters too.
READABLE_PLAYBOOK = CompiledLookup(
    lambda by: (
        Playbook.objects.for_user(by, include_starters=True)
        .select_related("current_version")
        .only(*READ_OF_PLAYBOOK, *(f"current_version__{name}" for name in READ_OF_VERSION))
    )
)
# The model always sees the tools that the instructions name, without a tool search.
ALWAYS_LOADED = {"anthropic/alwaysLoad": True}


def paginate(
    rows: QuerySet[M], *, by: Principal, of: str, newest: str, limit: int, cursor: str
) -> tuple[list[M], str | None]:
    """The next `limit` rows after `cursor`, by the column `newest` descending; the next cursor.

    A cursor is signed, for the list and filters that `of` identifies and one user; Invalid for any
    other.
    """
    salt = f"mcp.page:{by.user.pk}:{of}"
    if cursor:
        try:
            if len(cursor) > MAX_CURSOR_LENGTH or not cursor.isascii():
                raise signing.BadSignature
            value, pk = signing.loads(cursor, salt=salt)
        except signing.BadSignature:
            message = "This cursor is not one of this list. Start without one."
            raise Invalid.field("cursor", message) from None
        rows = rows.filter(Q(**{f"{newest}__lt": value}) | Q(**{newest: value, "pk__lt": pk}))
    found = list(rows.order_by(f"-{newest}", "-pk")[: limit + 1])
    if len(found) <= limit:
        return found, None
    value = getattr(found[limit - 1], newest)
    value = value.isoformat() if isinstance(value, datetime) else value
    return found[:limit], signing.dumps([value, str(found[limit - 1].pk)], salt=salt)


@tool("List playbooks", Scope.READ, READ_ONLY, ALWAYS_LOADED)
def list_playbooks(
    by: Principal,
    query: a.PlaybookQuery = "",
    include_starters: a.IncludeStarters = True,
    limit: a.PlaybookLimit = 50,
    cursor: a.Cursor = "",
    repository: a.Repository = "",
) -> r.PlaybookList:
    """List the playbooks you can read: your own and shared starters, newest first.
    Call this when you do not know which playbook fits a task, then get_playbook. If only a starter
    fits, call clone_playbook once before you read, and use the clone. If none fits, go on without
    one.
    """
    rows = Playbook.objects.for_user(by, include_starters=include_starters).active()
    # Chosen by few columns; those of the list are read for a page, not for all that are sorted.
    names = rows.only("name", "description", "updated_at")
    found, following = paginate(
        names.matching(query),
        by=by, of=f"playbooks:{include_starters}:{query}", newest="updated_at",
        limit=limit, cursor=cursor,
    )  # fmt: skip
    note = "" if found or cursor else NO_MATCH
    found = rank_playbooks(names, query)[:limit] if note else found
    listed = rows.for_list().in_bulk([row.pk for row in found])
    found = [listed[row.pk] for row in found if row.pk in listed]
    return r.PlaybookList.of(found, following, repository=repository, note=note)


@tool("Read a playbook", Scope.READ, READ_ONLY, ALWAYS_LOADED | LONG_RESULT, LONG_RESULT)
def get_playbook(
    by: Principal,
    playbook_id: a.OptionalPlaybookId = "",
    name: a.PlaybookName = "",
    section: a.SectionName = "",
    version: a.AnyVersion = None,
    max_tokens: a.MaxTokens = None,
    task: a.ReadTask = "",
    task_key: a.TaskKey = "",
) -> r.PlaybookText:
    """Read a playbook's advice before a task it covers: bullets such as `[str-00001] …` by section,
    plus the serving_id to report with. Apply the bullets that fit; your user's instructions come
    first. Remember which bullet ids helped or misled you. Read again for each new task: the text
    changes.
    """
    if bool(playbook_id) == bool(name):
        raise Invalid("Send either playbook_id or name; list_playbooks returns both.")
    found = find_playbook(by=by, name=name) if name else READABLE_PLAYBOOK.fetch(by, playbook_id)
    if max_tokens is None and "codex" in by.client.casefold():
        max_tokens = CODEX_TOKENS
    reading = read_playbook(
        playbook=found, by=by, section=section, version=version,
        max_tokens=max_tokens, task=task, task_key=task_key,
    )  # fmt: skip
    return r.PlaybookText.of(reading)


@tool("Report an outcome", Scope.REPORT, ADDITIVE, ALWAYS_LOADED)
def report_outcome(
    by: Principal,
    playbook_id: a.PlaybookId,
    task_description: a.TaskDescription,
    outcome: a.OutcomeStatus,
    reasoning_trace: a.Trace = "",
    notes: a.Notes = "",
    bullet_ids: a.CitedBullets = (),
    harmful_bullet_ids: a.HarmfulBullets = (),
    serving_id: a.ServingId = "",
    signal: a.Signal = "self_report",
    ref: a.Reference = "",
    idempotency_key: a.IdempotencyKey = "",
    cost_usd: a.CostUsd = None,
) -> r.OutcomeRecorded:
    """Report how a task went: once, at the end of every task for which you read a playbook, also
    when it failed. This is how the playbook learns. Cite in bullet_ids what you used
    and in harmful_bullet_ids what misled you. No secrets or personal data: other agents may
    read it. Starters take no reports: clone first.
    """
    report = reporting.report_outcome(
        playbook=reporting.OWN_PLAYBOOK.fetch(by, playbook_id), by=by,
        task_description=task_description, outcome=outcome, signal=signal,
        reasoning_trace=reasoning_trace, notes=notes,
        bullet_ids=bullet_ids, harmful_bullet_ids=harmful_bullet_ids,
        serving_id=serving_id, ref=ref, idempotency_key=idempotency_key, cost_usd=cost_usd,
    )  # fmt: skip
    return r.OutcomeRecorded.of(report)


@tool("Next case", Scope.REPORT, ADDITIVE)
def next_case(by: Principal, playbook_id: a.PlaybookId) -> r.CaseToAnswer:
    """A question that checks a new version; call only when asked to. Answer it with
    `content`, then report it with signal test and in notes only the answer. Repeat.
    """
    found = cases.next_case(playbook=Playbook.objects.for_user(by).fetch(playbook_id), by=by)
    return r.CaseToAnswer.of(found)


@tool("Start an evolution", Scope.EVOLVE, IDEMPOTENT)
def trigger_evolution(by: Principal, playbook_id: a.PlaybookId) -> r.EvolutionTriggered:
    """Turn the pending reports of a playbook into a new version now. Evolutions start by
    themselves, so call this only when your user asks; then follow job_id with get_evolution_status.
    """
    playbook = Playbook.objects.for_user(by).fetch(playbook_id)
    return r.EvolutionTriggered.of(lifecycle.trigger_evolution(playbook=playbook, by=by))


@tool("Follow an evolution", Scope.READ, READ_ONLY)
def get_evolution_status(
    by: Principal, job_id: a.JobId = "", outcome_id: a.OutcomeId = ""
) -> r.EvolutionState | r.OutcomeState:
    """Status of an evolution, or what became of each lesson of a report. While queued or
    running, ask again after some seconds. Tell your user what error_message says and what was
    refused.
    """
    if bool(job_id) == bool(outcome_id):
        raise Invalid("Send either job_id or outcome_id.")
    if outcome_id:
        return r.OutcomeState.of(outcome_with_edits(by=by, pk=outcome_id))
    return r.EvolutionState.of(EvolutionJob.objects.for_user(by).fetch(job_id))


@tool("List evolutions", Scope.READ, READ_ONLY)
def list_evolutions(
    by: Principal,
    playbook_id: a.PlaybookId,
    query: a.EvolutionQuery = "",
    limit: a.Limit = 20,
    cursor: a.Cursor = "",
) -> r.EvolutionList:
    """List the evolutions of a playbook, newest first, to see what became of its reports."""
    playbook = Playbook.objects.for_user(by).fetch(playbook_id)
    jobs = EvolutionJob.objects.for_user(by).filter(playbook=playbook).matching(query)
    found, following = paginate(
        jobs.select_related("from_version", "to_version").with_refused_count(),
        by=by, of=f"jobs:{playbook.pk}:{query}", newest="created_at", limit=limit, cursor=cursor,
    )  # fmt: skip
    items = [r.EvolutionItem.of(job) for job in found]
    return r.EvolutionList(result=items, next_cursor=following)


@tool("List versions", Scope.READ, READ_ONLY)
def list_versions(
    by: Principal,
    playbook_id: a.PlaybookId,
    query: a.VersionQuery = "",
    limit: a.Limit = 20,
    cursor: a.Cursor = "",
) -> r.VersionList:
    """List the versions of a playbook, newest first, to find a number for get_playbook or
    rollback_playbook.
    """
    playbook = READABLE_PLAYBOOK.fetch(by, playbook_id)
    found, following = paginate(
        Version.objects.filter(playbook=playbook).matching(query).defer("text"),
        by=by, of=f"versions:{playbook.pk}:{query}", newest="number", limit=limit, cursor=cursor,
    )  # fmt: skip
    items = [r.VersionItem.of(version) for version in found]
    return r.VersionList(result=items, next_cursor=following)


@tool("Create a playbook", Scope.WRITE, ADDITIVE)
def create_playbook(
    by: Principal, name: a.NewName, description: a.Description = "", content: a.NewContent = ""
) -> r.PlaybookCreated:
    """Create a playbook for a kind of task that will come again; reports fill it. Call
    list_playbooks first and reuse what fits.
    """
    refuse_taken_name(by=by, name=name)
    playbook = creation.create_playbook(by=by, name=name, description=description, content=content)
    return r.PlaybookCreated.of(playbook)


@tool("Clone a playbook", Scope.WRITE, ADDITIVE)
def clone_playbook(
    by: Principal, playbook_id: a.PlaybookId, name: a.CloneName = ""
) -> r.PlaybookCreated:
    """Copy a starter, or a playbook of yours, into one that you may report to. Do this once per
    project: every call makes another copy. Read the clone before you report.
    """
    playbook = Playbook.objects.for_user(by, include_starters=True).fetch(playbook_id)
    if name or playbook.is_starter:
        refuse_taken_name(by=by, name=name or playbook.name)
    return r.PlaybookCreated.of(creation.clone_playbook(playbook=playbook, by=by, name=name))


@tool("Roll back a playbook", Scope.WRITE, DESTRUCTIVE)
def rollback_playbook(
    by: Principal, playbook_id: a.PlaybookId, version: a.OlderVersion
) -> r.PlaybookCreated:
    """Make an older version current again for every agent, as a new version; nothing is lost. Call
    this only when your user asks for it.
    """
    playbook = Playbook.objects.for_user(by).fetch(playbook_id)
    created = rollback.rollback_playbook(playbook=playbook, by=by, number=version)
    return r.PlaybookCreated.of(playbook, created)
