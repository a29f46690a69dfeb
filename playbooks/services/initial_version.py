"""The first version of a playbook: created, imported, cloned, or a starter's."""

from typing import Any

from django.db import transaction

from accounts.models import User
from core.security.scopes import Principal
from playbooks.document.operations import Result
from playbooks.document.state import State
from playbooks.models import Playbook
from playbooks.models import Section as SectionRow
from playbooks.services.loading import LoadedPlaybook
from playbooks.services.publishing import publish


def create_with_initial_version(
    *,
    owner: User | None,
    author: Principal | None = None,
    name: str,
    description: str,
    source: str,
    result: Result,
    reason: str,
    **fields: Any,
) -> Playbook:
    """The playbook, its sections and version 1 with the deltas that explain it, all or nothing."""
    with transaction.atomic():
        playbook = Playbook.objects.create(
            owner=owner, name=name, description=description, source=source, **fields
        )
        rows = [
            SectionRow(
                playbook=playbook,
                key=section.key,
                title=section.title,
                slug=section.slug,
                position=position,
                aliases=list(section.aliases),
            )
            for position, section in enumerate(result.state.sections)
        ]
        SectionRow.objects.bulk_create(rows)
        empty = LoadedPlaybook(State(result.state.sections), {row.key: row for row in rows}, {})
        publish(playbook, empty, result, reason=reason, author=author, always=True)
    return playbook
