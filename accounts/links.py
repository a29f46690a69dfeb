"""Addresses of the admin's lists and rows."""

from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode


def list_address(model: str, **query: object) -> str:
    """The address of a list, filtered: `list_address("evolution_outcome", state="pending")`."""
    address = reverse(f"admin:{model}_changelist")
    return f"{address}?{urlencode(query)}" if query else address


def link_to(model: str, pk: Any, text: object) -> str:
    """A link to one row's page; `text` alone when there is no row."""
    if not pk:
        return str(text)
    return format_html('<a href="{}">{}</a>', reverse(f"admin:{model}_change", args=[pk]), text)
