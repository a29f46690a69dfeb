"""Staff's view of people, keys and the audit log, and what the admin pages of every app share."""

from accounts.admin import keys, log, people, sign_ins
from accounts.admin.export import CsvExport
from accounts.admin.rows import MachineRows, principal_of, row_action, shortened

__all__ = [
    "CsvExport",
    "MachineRows",
    "keys",
    "log",
    "people",
    "principal_of",
    "row_action",
    "shortened",
    "sign_ins",
]
