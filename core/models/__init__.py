"""The models that every app uses."""

from core.models.audit_entries import AuditEntry, AuditQuerySet
from core.models.base import BaseModel
from core.models.counter_totals import CounterTotals
from core.models.idempotent_responses import IdempotentResponse
from core.models.rate_counters import RateCounter

__all__ = [
    "AuditEntry",
    "AuditQuerySet",
    "BaseModel",
    "CounterTotals",
    "IdempotentResponse",
    "RateCounter",
]
