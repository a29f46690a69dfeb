"""Addresses of the admin's lists."""

from django.urls import reverse
from django.utils.http import urlencode


def changelist_url(model: str, **query: object) -> str:
    """The address of a list, filtered: `changelist_url("evolution_outcome", state="pending")`."""
    address = reverse(f"admin:{model}_changelist")
    if not query:
        return address
    return f"{address}?{urlencode({name: str(value) for name, value in query.items()})}"
