"""Sources of outcomes (keys, connected apps, people), and reverting what one of them taught."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Max, Q, Sum
from django.utils import timezone

from accounts.models import ApiKey, ConnectedApp, User
from billing.models import UsageRecord
from core.errors import Conflict, Invalid
from core.security.scopes import Principal
from core.sql.querysets import is_uuid
from evolution.engine.inputs import SELF_REPORT
from evolution.models import Correction, EvolutionJob, Outcome, ReporterTally
from evolution.outcomes.correction import undo_corrections
from playbooks.document.operations import Provenance
from playbooks.models import Playbook, ReviewItem
from playbooks.review.decisions import decline_review_item
from playbooks.services.loading import day_mark, lock_playbook
from playbooks.services.outcome_removal import OutcomeRemoval, remove_outcomes

NO_SOURCE = "Send key:<id>, app:<id>, user:<id> or outcome:<id>; GET …/sources lists them."
FIELDS = {"key": "api_key_id", "app": "app_id", "user": "reported_by_id", "outcome": "pk"}
REPORTER = ("api_key_id", "app_id", "reported_by_id")
LABELS: tuple[tuple[Any, str], ...] = (
    (ApiKey, "name"),
    (ConnectedApp, "application__name"),
    (User, "email"),
)
LATELY = timedelta(days=30)
"""While one source alone has reported in this time, its days count as sources."""
BACKING = ("ground_truth", "test")
SET_ASIDE = "Its source was reverted."


@dataclass(frozen=True)
class Source:
    """An API key, app or user that reports outcomes or edits: `name` is `key:<id>`, `app:<id>`
    or `user:<id>`.
    """

    name: str
    label: str
    outcome_count: int
    last_at: Any
    edit_count: int = 0
    correction_count: int = 0


def source_name(key: UUID | None, app: UUID | None, user: UUID | None) -> str:
    """The key that reported, else the app, else the user; empty when all are gone."""
    if key or app:
        return f"key:{key}" if key else f"app:{app}"
    return f"user:{user}" if user else ""


def provenance_of(job: EvolutionJob) -> Provenance:
    """Provenance of a job's operations: the curating model, and the source of each outcome."""
    calls = UsageRecord.objects.filter(job_id=job.pk, operation="curate").order_by("-created_at")
    mine = Outcome.objects.filter(job=job)
    rows = list(mine.values_list("pk", "signal", *REPORTER))
    # A key or app that says `test` has only its own word for it.
    judged = mine.exclude(signal=SELF_REPORT)
    checked = judged if job.training_id is not None else judged.filter(api_key=None, app=None)
    found = {str(pk): source_name(*reporter) for pk, _, *reporter in rows}
    model = calls.values_list("model", flat=True).first()
    return Provenance(
        model=model or job.engine,
        sources={pk: source for pk, source in found.items() if source},
        mark=_mark(job),
        checked=frozenset(map(str, checked.values_list("pk", flat=True))),
        self_reported=frozenset(str(pk) for pk, signal, *_ in rows if signal == SELF_REPORT),
        backed=backed_bullets(job.playbook),
    )


def backed_bullets(playbook: Playbook) -> frozenset[str]:
    """The bullets that rest on an outcome which a test or a known answer judged."""
    known = playbook.bullets.active().values_list("public_id", "metadata")
    sources = {name: set(kept.get("outcome_ids", ())) for name, kept in known}
    found = Outcome.objects.filter(playbook=playbook, signal__in=BACKING)
    judged = set(map(str, found.in_bulk(set[str]().union(*sources.values()))))
    return frozenset(name for name, ids in sources.items() if ids & judged)


def _mark(job: EvolutionJob) -> str:
    now = timezone.now()
    if job.training_id is not None:
        return f"@{job.pk}"
    lately = ReporterTally.objects.filter(playbook=job.playbook_id, last_at__gt=now - LATELY)
    return day_mark(now) if lately.values("reporter").distinct().count() <= 1 else ""


def list_sources(*, playbook: Playbook) -> list[Source]:
    """Each key, app or user that reported outcomes or edited, latest first.

    A person's own edits are no source: they are not reverted.
    """
    tallies = ReporterTally.objects.filter(playbook=playbook).values_list("reporter")
    rows = list(tallies.annotate(Sum("outcomes"), Max("last_at")))
    reporters = [[UUID(part) if part else None for part in row[0].split("/")] for row in rows]
    labels: dict[UUID | None, str] = {}
    for column, (model, label) in zip(zip(*reporters, strict=True), LABELS, strict=False):
        existing: Any = model.objects.filter(pk__in={pk for pk in column if pk})
        labels |= dict(existing.values_list("pk", label))
    found: dict[str, Source] = {}
    for (_, count, last_at), ids in zip(rows, reporters, strict=True):
        # Those that are deleted report no more: a disconnected app's outcomes are the user's.
        key, app, user = (pk if pk in labels else None for pk in ids)
        # The owner does not learn which member of staff reported.
        known = key or app or (user if user == playbook.owner_id else None)
        if name := source_name(key, app, user):
            _merge(found, Source(name, labels[known] if known else "staff", count, last_at))
    for row in _by_credential(playbook.deltas.all(), Max("created_at")):
        edits = row["count"]
        _merge(found, Source(row["source"], row["label"], 0, row["last_at"], edit_count=edits))
    for row in _by_credential(Correction.objects.filter(playbook=playbook), Max("updated_at")):
        said = row["count"]
        _merge(found, Source(row["source"], row["label"], 0, row["last_at"], correction_count=said))
    return sorted(found.values(), key=lambda source: source.last_at, reverse=True)


def _by_credential(rows: Any, last: Max) -> Any:
    """The keys and apps that these edits or corrections came by; few rows have one."""
    named = rows.exclude(source="").exclude(source__startswith="user:").order_by().values("source")
    return named.annotate(label=Max("source_name"), count=Count("*"), last_at=last)


def _merge(found: dict[str, Source], source: Source) -> None:
    if (known := found.get(source.name)) is not None:
        source = replace(
            known,
            outcome_count=known.outcome_count + source.outcome_count,
            edit_count=known.edit_count + source.edit_count,
            correction_count=known.correction_count + source.correction_count,
            last_at=max(known.last_at, source.last_at),
        )
    found[source.name] = source


def rollback_source(
    *,
    playbook: Playbook,
    by: Principal,
    source: str,
    include_mixed: bool = False,
    dry_run: bool = False,
) -> OutcomeRemoval:
    """Revert what was learned from `source` (`key:`, `app:`, `user:` or `outcome:` and an id).

    Also what the key or app itself edited. Its pending outcomes are set aside and its review items
    declined, so that nothing is learned from them again. What it corrected says again what was
    reported, and is learned from anew. Raises Invalid for a source without
    outcomes and edits here, and Conflict while an evolution processes its outcomes.
    """
    with transaction.atomic():
        lock_playbook(playbook)
        ids = _outcomes_of(playbook, source)
        corrected = undo_corrections(playbook=playbook, source=source, dry_run=dry_run)
        _refuse_while_running(playbook, ids | corrected)
        made = remove_outcomes(
            playbook=playbook,
            by=by,
            outcome_ids=ids | corrected,
            source=source if source.startswith(("key:", "app:")) else "",
            include_mixed=include_mixed,
            dry_run=dry_run,
        )
        if not dry_run:
            waiting = Outcome.objects.pending().filter(playbook=playbook, pk__in=ids)
            waiting.update(set_aside_reason=SET_ASIDE)
            # Suggestions that this source proposed, or that only these outcomes led to.
            items = ReviewItem.objects.pending().filter(playbook=playbook)
            for item in items.select_related("delta"):
                learned = item.delta.outcome_ids and set(item.delta.outcome_ids) <= ids
                if learned or item.delta.source == source:
                    decline_review_item(item=item, by=by)
    return made


def _outcomes_of(playbook: Playbook, source: str) -> set[str]:
    """The ids of all outcomes of this source."""
    kind, _, text = source.partition(":")
    if kind not in FIELDS or not is_uuid(text):
        raise Invalid.field("source", NO_SOURCE)
    wanted = Q(**{FIELDS[kind]: text}) & (Q(api_key=None, app=None) if kind == "user" else Q())
    rows = Outcome.objects.filter(wanted, playbook=playbook)
    found = set(rows.values_list("pk", flat=True))
    traces = (
        playbook.deltas.filter(source=source),
        Correction.objects.filter(playbook=playbook, source=source),
    )
    if not found and not any(rows.exists() for rows in traces):
        raise Invalid.field("source", "This source has no outcomes or edits in this playbook.")
    return set(map(str, found))


def _refuse_while_running(playbook: Playbook, ids: set[str]) -> None:
    active = EvolutionJob.objects.active().filter(playbook=playbook)
    # The job's few outcomes are read, not the source's many.
    bound = Outcome.objects.filter(job__in=active).values_list("pk", flat=True)
    if not ids.isdisjoint(map(str, bound)):
        raise Conflict(
            "An evolution is processing its outcomes. Cancel it, or wait until it has ended.",
            code="evolution_active",
        )
