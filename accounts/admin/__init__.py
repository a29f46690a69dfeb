"""The admin of users, their keys and connected apps, and of the audit log."""

from accounts.admin import api_keys, audit_log, oauth, users

__all__ = ["api_keys", "audit_log", "oauth", "users"]
