"""Base classes and helpers for the admin modules of all apps."""

from core.admin.base import (
    ReadOnlyAdmin,
    apply_action,
    changelist_url,
    confirm_page,
    first_line,
    request_principal,
    row_action,
)
from core.admin.csv_export import CsvExportAdmin, csv_response

__all__ = [
    "CsvExportAdmin",
    "ReadOnlyAdmin",
    "apply_action",
    "changelist_url",
    "confirm_page",
    "csv_response",
    "first_line",
    "request_principal",
    "row_action",
]
