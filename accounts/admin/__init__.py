"""The admin of people, their keys, sign-ins and connected apps, and of the audit log."""

from accounts.admin import api_keys, audit_log, oauth, sign_ins, users

__all__ = ["api_keys", "audit_log", "oauth", "sign_ins", "users"]
