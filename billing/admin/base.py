"""Base classes of the billing admin."""

from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest

from core.admin import CsvExportAdmin, request_principal
from core.audit import record


class PlanListAdmin(CsvExportAdmin):
    """Lists that no menu shows while billing is off."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return settings.BILLING_ENABLED and super().has_module_permission(request)


class AuditedAdmin(CsvExportAdmin):
    """Rows whose changes are in the audit log as `set_<audit_noun>` and `remove_<audit_noun>`."""

    audit_noun = ""

    def audit_detail(self, obj: Any) -> dict[str, Any]:
        """The detail of a `set_` entry."""
        raise NotImplementedError

    def audit_removal_detail(self, obj: Any) -> dict[str, Any]:
        return {}

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        self._audit(request, obj, "set", self.audit_detail(obj))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self._audit(request, obj, "remove", self.audit_removal_detail(obj))
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            self.delete_model(request, row)

    def _audit(self, request: HttpRequest, obj: Any, verb: str, detail: dict[str, Any]) -> None:
        owner = getattr(obj, "user_id", None)
        by, action = request_principal(request), f"{verb}_{self.audit_noun}"
        record(action=action, by=by, subject=obj, owner=owner, **detail)
