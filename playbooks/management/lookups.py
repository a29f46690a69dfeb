"""Playbooks as an operator names them in a command."""

from django.core.management.base import CommandError

from core.sql.querysets import is_uuid
from playbooks.models import Playbook, PlaybookQuerySet


def playbook_named(text: str, rows: PlaybookQuerySet | None = None) -> Playbook:
    """The playbook with this id, or the only one of this name in any case; else CommandError."""
    rows = Playbook.objects.all() if rows is None else rows
    rows = rows.select_related("owner", "current_version")
    found = list(rows.filter(pk=text) if is_uuid(text) else rows.filter(name__iexact=text.strip()))
    if not found:
        raise CommandError(f"No playbook with this id or name: {text!r}. See list_playbooks.")
    if len(found) > 1:
        ids = ", ".join(str(playbook.pk) for playbook in found)
        raise CommandError(f"Several playbooks are called {text!r}. Give the id of one: {ids}.")
    return found[0]
