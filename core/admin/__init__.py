from core.admin.base import ReadOnlyAdmin, apply_action, first_line, request_principal, row_action
from core.admin.csv_export import CsvExportAdmin, csv_response
from core.admin.links import changelist_url

__all__ = [
    "CsvExportAdmin",
    "ReadOnlyAdmin",
    "apply_action",
    "csv_response",
    "first_line",
    "changelist_url",
    "request_principal",
    "row_action",
]
