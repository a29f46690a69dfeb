"""Addresses of the admin's lists."""

from django.urls import reverse
from django.utils.http import urlencode


def list_address(model: str, **query: object) -> str:
    """The address of a list, filtered: `list_address("evolution_outcome", state="pending")`."""
    address = reverse(f"admin:{model}_changelist")
    return f"{address}?{urlencode(query)}" if query else address
