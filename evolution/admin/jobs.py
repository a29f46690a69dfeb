"""Staff pages of evolutions and trainings, and of incidents, provider circuits and workers."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Count, Max, Min, Q, QuerySet, Sum
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html, format_html_join

from billing.models import UsageRecord
from core.admin import ReadOnlyAdmin, changelist_url, row_action
from core.clock import database_now
from evolution.jobs.lifecycle import (
    cancel_evolution,
    redrive_evolution,
    reset_circuits,
    retry_evolution,
)
from evolution.models import (
    JOB_STATES,
    EvolutionJob,
    Incident,
    ProviderCircuit,
    TrainingRun,
    WorkerHeartbeat,
)
from playbooks.admin.contents import OWNED


class JobStateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(JOB_STATES)

    def queryset(self, request: HttpRequest, rows: Any) -> Any:
        return rows.in_state(self.value() or "", database_now())


def _group(title: str, names: str) -> Any:
    return title or None, {"fields": tuple(names.split())}


@admin.register(EvolutionJob)
class EvolutionJobAdmin(ReadOnlyAdmin):
    list_display = ("status", "reason", *OWNED, "phase", "tries", "next_attempt_at", "created_at")
    list_display_links = ("status",)
    list_filter = (JobStateFilter, "trigger", "engine")
    list_select_related = ("playbook__owner",)
    date_hierarchy = "created_at"
    search_fields = ("=id", "playbook__name", "=playbook__id", "playbook__owner__email")
    actions = ("retry", "cancel", "redrive")
    readonly_fields = ("reason", "timeline", "see")
    fieldsets = (
        _group("", "status reason playbook see timeline"),
        _group("Attempts and waits", "attempt rescues wait_count next_attempt_at wait_reason"),
        _group("Worker", "phase fence lease_expires_at heartbeat_at deadline_at"),
        _group("Trigger", "trigger triggered_by correlation_id training from_version notified_at"),
        _group("Result", "to_version outcomes_processed skipped_outcomes token_totals"),
        _group("Engine", "engine prompt_versions ace_core_version config_hash"),
    )
    csv_columns = (
        *("id", "status", "error_code", "wait_reason", "playbook_id", "playbook__owner__email"),
        *("trigger", "phase", "attempt", "rescues", "outcomes_processed", "engine"),
        *("created_at", "started_at", "completed_at"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[EvolutionJob]:
        # The Curator's whole answer: not for a list.
        return super().get_queryset(request).defer("curation")

    @admin.display(description="reason", ordering="error_code")
    def reason(self, job: EvolutionJob) -> str:
        """Why it waits or failed: the sentence that its owner reads as well."""
        failed = ": ".join(filter(None, (job.error_code, job.error_message)))
        return job.wait_reason or failed or "–"

    @admin.display(description="attempts / retries")
    def tries(self, job: EvolutionJob) -> str:
        return f"{job.attempt} / {job.rescues}"

    @admin.display(description="go to")
    def see(self, job: EvolutionJob) -> str:
        found = [
            (changelist_url("evolution_outcome", job__id__exact=job.pk), "bound outcomes"),
            (changelist_url("evolution_reflection", q=job.pk), "reflections"),
            (changelist_url("playbooks_delta", q=job.pk), "deltas"),
            (changelist_url("billing_usagerecord", q=job.pk), "model calls"),
            (changelist_url("core_auditentry", q=job.pk), "audit log"),
        ]
        if job.to_version_id:
            address = reverse("admin:playbooks_version_change", args=[job.to_version_id])
            found.append((address, "created version"))
        return format_html_join(" · ", '<a href="{}">{}</a>', found)

    @admin.display(description="timeline")
    def timeline(self, job: EvolutionJob) -> str:
        calls = UsageRecord.objects.filter(job_id=job.pk).order_by().values("operation")
        phases = calls.annotate(
            calls=Count("pk"),
            began=Min("created_at"),
            ended=Max("updated_at"),
            tokens=Sum("total_tokens"),
            cost=Sum("cost_usd"),
            unpriced=Count("pk", filter=Q(cost_usd=None)),
        ).order_by("began")
        context = {"job": job, "phases": phases, "moments": timeline_events(job)}
        return render_to_string("admin/evolution/timeline.html", context)

    retry = row_action(
        "Try again (failed or cancelled)",
        lambda job, by: retry_evolution(job=job, by=by),
        one="evolution queued again",
        many="evolutions queued again",
        offered=lambda jobs: jobs.filter(status__in=("failed", "cancelled")),
    )
    cancel = row_action(
        "Cancel (queued or running)",
        lambda job, by: cancel_evolution(job=job, by=by),
        one="evolution cancelled",
        many="evolutions cancelled",
        offered=lambda jobs: jobs.active(),
    )
    redrive = row_action(
        "Redrive the outcomes it set aside",
        lambda job, by: redrive_evolution(job=job, by=by),
        one="evolution has its outcomes pending again",
        many="evolutions have their outcomes pending again",
        offered=lambda jobs: jobs.filter(status="failed") | jobs.exclude(skipped_outcomes={}),
    )


def timeline_events(job: EvolutionJob) -> list[tuple[str, datetime, timedelta]]:
    """The moments of a job, with the time since its creation."""
    named = (
        ("created", job.created_at),
        ("worker notified", job.notified_at),
        ("first started", job.started_at),
        ("last heartbeat", job.heartbeat_at),
        ("cancel requested", job.cancel_requested_at),
        ("ended", job.completed_at),
        ("next attempt", job.next_attempt_at),
    )
    found = [
        (name, at, timedelta(seconds=max(0, round((at - job.created_at).total_seconds()))))
        for name, at in named
        if at is not None
    ]
    return sorted(found, key=lambda moment: moment[1])


@admin.register(TrainingRun)
class TrainingRunAdmin(ReadOnlyAdmin):
    list_display = ("status", "stop_reason", *OWNED, "kind", "created_at", "completed_at")
    list_filter = ("status", "kind")
    list_select_related = ("playbook__owner",)
    date_hierarchy = "created_at"
    search_fields = ("=id", "playbook__name", "=playbook__id", "playbook__owner__email")


class CircuitStateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("open", "calls paused")]

    def queryset(self, request: HttpRequest, rows: Any) -> QuerySet[Any]:
        found: QuerySet[Any] = rows.open(database_now()) if self.value() == "open" else rows
        return found


@admin.register(ProviderCircuit)
class ProviderCircuitAdmin(ReadOnlyAdmin):
    list_display = (
        *("code", "label", "is_user_key", "pause", "open_until", "probe_until"),
        *("most_calls", "slowest_seconds", "updated_at"),
    )
    list_display_links = ("label",)
    list_filter = (CircuitStateFilter, "is_user_key")
    ordering = ("-updated_at",)
    exclude = ("key",)
    search_fields = ("label", "code")
    actions = ("reset_circuits",)

    reset_circuits = row_action(
        "Reset circuit and retry its jobs",
        lambda row, by: reset_circuits(keys=[row.pk], by=by),
        one="provider circuit is reset",
        many="provider circuits are reset",
    )


@admin.register(WorkerHeartbeat)
class WorkerHeartbeatAdmin(ReadOnlyAdmin):
    list_display = ("worker", "last_seen_at")
    ordering = ("-last_seen_at",)


# The list that shows what an incident is about: its model, and the filter.
INCIDENT_LISTS: dict[str, tuple[str, dict[str, str]]] = {
    Incident.Kind.PROVIDER_DOWN: ("evolution_providercircuit", {"state": "open"}),
    Incident.Kind.QUEUE_OLD: ("evolution_evolutionjob", {"state": "queue"}),
    Incident.Kind.JOBS_STUCK: ("evolution_evolutionjob", {"state": "stuck"}),
    Incident.Kind.EVOLUTIONS_FAILED: ("evolution_evolutionjob", {"state": "failed"}),
    Incident.Kind.VERSION_TAKEN_BACK: ("playbooks_trial", {"verdict__exact": "worse"}),
    Incident.Kind.SPEND_JUMPED: ("billing_usagerecord", {}),
    Incident.Kind.WEBHOOKS_FAILED: ("billing_stripeevent", {}),
}


@admin.register(Incident)
class IncidentAdmin(ReadOnlyAdmin):
    """What went wrong while nobody looked."""

    list_display = ("kind", "text", "opened_at", "last_seen_at", "closed_at", "see")
    list_filter = (("closed_at", admin.EmptyFieldListFilter), "kind")
    date_hierarchy = "opened_at"
    exclude = ("key",)
    readonly_fields = ("see",)
    csv_columns = ("kind", "text", "opened_at", "last_seen_at", "closed_at")

    @admin.display(description="go to")
    def see(self, incident: Incident) -> str:
        model, query = INCIDENT_LISTS[incident.kind]
        return format_html('<a href="{}">rows</a>', changelist_url(model, **query))
