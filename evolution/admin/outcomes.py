"""Staff's view of what agents reported and what the worker made of it."""

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from core.admin import ReadOnlyAdmin, confirm_page, first_line, request_principal, row_action
from core.errors import AceError
from evolution.jobs import redrive as jobs_redrive
from evolution.models import Outcome, Reflection
from playbooks.models import Playbook
from playbooks.services.outcome_removal import OutcomeRemoval, remove_outcomes

LONG_FIELDS = ("reasoning_trace", "notes", "reflection_data")


class OutcomeStateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("pending", "pending"),
            ("set_aside", "set aside"),
            ("taken", "taken up"),
            ("processed", "processed"),
        ]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "pending":
                return rows & Outcome.objects.pending()
            case "set_aside":
                return rows.exclude(set_aside_reason="")
            case "taken":
                return rows.filter(processed_at=None).exclude(job=None)
            case "processed":
                return rows.exclude(processed_at=None)
        return rows


@admin.register(Outcome)
class OutcomeAdmin(ReadOnlyAdmin):
    list_display = ("state", "status", "task", "playbook", "signal", "version", "reported")
    list_display_links = ("state", "task")
    list_filter = (OutcomeStateFilter, "status", "signal")
    list_select_related = ("playbook", "version")
    date_hierarchy = "created_at"
    search_fields = (
        *("=id", "task_description", "playbook__name", "=playbook__id"),
        *("playbook__owner__email", "=api_key__prefix"),
    )
    actions = ("redrive", "set_aside", "take_back")
    exclude = ("request_hash",)
    csv_columns = (
        *("id", "created_at", "playbook_id", "playbook__owner__email", "status", "signal"),
        *("version__number", "version_assumed", "api_key__prefix", "failures"),
        *("set_aside_reason", "job_id", "processed_at"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Outcome]:
        # A page of a list of many rows: the long texts stay where they are.
        return super().get_queryset(request).defer(*LONG_FIELDS, "version__text")

    @admin.display(ordering="processed_at")
    def state(self, outcome: Outcome) -> str:
        if outcome.processed_at:
            return "processed"
        if outcome.set_aside_reason:
            return f"set aside: {outcome.set_aside_reason[:60]}"
        return "taken up" if outcome.job_id else "pending"

    @admin.display(ordering="task_description")
    def task(self, outcome: Outcome) -> str:
        return first_line(outcome.task_description)

    @admin.display(ordering="created_at")
    def reported(self, outcome: Outcome) -> Any:
        return outcome.created_at

    @admin.action(description="Redrive: pending again", permissions=["change"])
    def redrive(self, request: HttpRequest, rows: QuerySet[Outcome]) -> None:
        changed, who = 0, request_principal(request)
        for playbook, ids in by_playbook(rows):
            try:
                changed += jobs_redrive.redrive_outcomes(playbook=playbook, by=who, outcome_ids=ids)
            except AceError as error:
                messages.warning(request, f"{playbook}: {error.message}")
        word = "outcome is" if changed == 1 else "outcomes are"
        messages.add_message(
            request,
            messages.SUCCESS if changed else messages.WARNING,
            f"{changed} {word} pending again.",
        )

    set_aside = row_action(
        "Set aside: no evolution takes it up",
        lambda row, by: jobs_redrive.set_aside_outcome(outcome=row, by=by),
        one="outcome set aside",
        many="outcomes set aside",
        rows=lambda rows: rows.select_related("playbook"),
    )

    @admin.action(description="Take back what they taught…", permissions=["change"])
    def take_back(self, request: HttpRequest, rows: QuerySet[Outcome]) -> HttpResponse | None:
        """A look first: what each playbook would lose, and what stays."""
        who, sure = request_principal(request), "apply" in request.POST
        found = []
        for playbook, ids in by_playbook(rows):
            outcome_ids = [str(pk) for pk in ids]
            try:
                done = remove_outcomes(
                    playbook=playbook, by=who, outcome_ids=outcome_ids, dry_run=not sure
                )
                found.append(f"{playbook}: {describe_withdrawal(done)}")
            except AceError as error:
                messages.warning(request, f"{playbook}: {error.message}")
        if not sure:
            return confirm_page(
                request,
                self,
                rows,
                lines=found,
                title="Take back what outcomes taught",
                action="take_back",
                verb="Take it back",
                consequence="Each playbook gets a new version, which can be rolled back.",
            )
        for line in found:
            messages.success(request, line)
        return None


def by_playbook(rows: QuerySet[Outcome]) -> list[tuple[Playbook, list[UUID]]]:
    """The ids of the outcomes of each playbook, so that each is locked once."""
    found: dict[UUID, list[UUID]] = {}
    for playbook_id, pk in rows.values_list("playbook_id", "pk"):
        found.setdefault(playbook_id, []).append(pk)
    playbooks = Playbook.objects.filter(pk__in=found).select_related("current_version")
    return [(playbook, found[playbook.pk]) for playbook in playbooks]


def describe_withdrawal(done: OutcomeRemoval) -> str:
    retired, changed = ", ".join(done.retired) or "none", ", ".join(done.changed) or "none"
    kept = f"; others taught too, and stay: {', '.join(done.kept)}" if done.kept else ""
    return f"retired {retired}; changed {changed}; votes gone: {done.votes}{kept}"


@admin.register(Reflection)
class ReflectionAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "job", "outcome", "attempt", "tokens")
    list_select_related = ("job", "outcome")
    date_hierarchy = "created_at"
    search_fields = ("=job__id", "=outcome__id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Reflection]:
        long = (f"outcome__{name}" for name in LONG_FIELDS)
        return super().get_queryset(request).defer("content", "job__curation", *long)
