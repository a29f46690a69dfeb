"""Staff's view of people, keys and the audit log, and what the admin pages of every app share."""

from accounts.admin import keys, log, people, sign_ins
from accounts.admin.export import CsvExport
from accounts.admin.rows import MachineRows, act_on, principal_of, shortened

__all__ = [
    "CsvExport",
    "MachineRows",
    "act_on",
    "keys",
    "log",
    "people",
    "principal_of",
    "shortened",
    "sign_ins",
]
